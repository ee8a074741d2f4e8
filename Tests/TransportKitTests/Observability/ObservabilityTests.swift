import Testing
import TransportKit

@Suite struct ObservabilityTests {
    @Test func `A line below the level is neither written nor built`() {
        let sink = RecordingLog()
        let log = Log(level: .info, subsystem: "a", sink: sink)
        func fail() -> String {
            Issue.record("the message was built")
            return ""
        }
        log.debug(fail())
        log.info("one")
        log.named("b").error("two")
        #expect(sink.lines.map { "\($0.subsystem): \($0.message)" } == ["a: one", "b: two"])
        #expect(sink.lines.map(\.level) == [.info, .error])
    }

    @Test func `A recording keeps its last lines`() {
        let sink = RecordingLog(limit: 2)
        for number in 0..<5 { sink.write(level: .info, subsystem: "", message: "\(number)") }
        #expect(sink.lines.map(\.message) == ["3", "4"])
    }

    @Test func `A storm is one line a time, and the next line counts the rest`() {
        let time = ManualTime()
        let limiter = LogLimiter(interval: .seconds(10), time: time)
        var lines: [String] = []
        func storm(_ count: Int) {
            for _ in 0..<count { limiter.run { (more: String) in lines.append("it failed\(more)") } }
        }
        storm(1000)
        #expect(lines == ["it failed"])
        time.advance(by: .seconds(10))
        storm(2)
        time.advance(by: .seconds(10))
        storm(1)
        time.advance(by: .seconds(10))
        storm(1)
        #expect(
            lines.dropFirst() == [
                "it failed (and 999 more since the last line)", "it failed (and 1 more since the last line)",
                "it failed",
            ])
    }

    @Test func `Numbers add up`() {
        let metrics = InProcessMetrics()
        metrics.add(2, to: "frames")
        metrics.add(3, to: "frames")
        metrics.change("sockets", by: 1)
        metrics.change("sockets", by: -1)
        #expect(metrics["frames"] == 5)
        #expect(metrics["nobody"] == 0)
        #expect(metrics.snapshot == ["frames": 5, "sockets": 0])
    }
}
