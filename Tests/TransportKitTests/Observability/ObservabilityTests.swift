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
