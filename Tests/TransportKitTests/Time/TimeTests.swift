import Testing
import TransportKit
import TransportKitTesting

@Suite struct InstantTests {
    @Test func `Instants stay at the ends of their clock`() {
        let end = Instant(nanoseconds: .max)
        #expect(Instant.zero + .seconds(-1) == .zero)
        #expect(end + .seconds(1) == end)
        #expect(Instant.zero + .seconds(Int64.max) == Instant(nanoseconds: UInt64(Int64.max)))
        #expect(end - .zero == .nanoseconds(Int64.max))
        #expect(Instant.zero - end == .nanoseconds(-Int64.max))
        #expect(Instant(nanoseconds: 5) - Instant(nanoseconds: 7) == .nanoseconds(-2))
    }

    @Test func `Durations are held at the ends of Int64`() {
        #expect(Duration.seconds(Int64.max).clampedNanoseconds == .max)
        #expect(Duration.seconds(Int64.min).clampedNanoseconds == .min)
        #expect(Duration.milliseconds(-1500).clampedNanoseconds == -1_500_000_000)
        #expect(Duration.microseconds(1500).inMilliseconds == 1.5)
        #expect(
            [Duration.milliseconds(1250), .seconds(90), .seconds(600), .seconds(2161), .seconds(86_400)].map(\.inWords)
                == ["1250 ms", "90 s", "10 min", "2161 s", "24 h"])
    }

    @Test func `The wall clock stays at its ends too`() {
        #expect(WallTime(seconds: .max) + .seconds(1) == WallTime(seconds: .max))
        #expect(WallTime(seconds: .min) + .seconds(-1) == WallTime(seconds: .min))
        #expect(WallTime(seconds: 5) + .milliseconds(1999) == WallTime(seconds: 6))
    }
}

@Suite struct ManualTimeTests {
    let simulation = Simulation()

    @Test func `Sleepers wake when their time has come, in the order of their deadlines`() {
        let (simulation, time) = (simulation, simulation.time)
        let log = RecordingLog()
        for seconds in [3, 1, 2] {
            simulation.start {
                try? await time.sleep(for: .seconds(seconds))
                log.write(level: .info, subsystem: "", message: "\(seconds)")
            }
        }
        simulation.drain()
        #expect(time.nextDeadline == .zero + .seconds(1))
        time.advance(by: .milliseconds(999))
        simulation.drain()
        #expect(log.lines.isEmpty)
        time.advance(by: .seconds(5))
        simulation.drain()
        #expect(log.lines.map(\.message) == ["1", "2", "3"])
        #expect(time.nextDeadline == nil)
    }

    @Test func `A cancelled sleeper wakes at once and leaves nothing behind`() {
        let time = simulation.time
        let sleeper = simulation.start { () -> Bool in
            do throws(CancellationError) { try await time.sleep(for: .seconds(1)) } catch { return true }
            return false
        }
        simulation.drain()
        #expect(time.nextDeadline != nil)
        sleeper.cancel()
        simulation.drain()
        #expect(time.nextDeadline == nil)
        #expect(time.now() == .zero)
    }

    @Test func `A deadline that has passed needs no sleep, unless the task is cancelled`() throws {
        let (simulation, time) = (simulation, simulation.time)
        time.advance(by: .seconds(5))
        try simulation.run {
            try await time.sleep(until: .zero + .seconds(5))
            let cancelled = simulation.start { (try? await time.sleep(until: .zero)) != nil }
            cancelled.cancel()
            #expect(await cancelled.value == false)
        }
    }

    @Test func `The wall moves along to the second, and jumps without waking anybody`() {
        let time = ManualTime(wall: WallTime(seconds: 100))
        for _ in 0..<5 { time.advance(by: .milliseconds(500)) }
        #expect(time.wallNow() == WallTime(seconds: 102))
        time.setWall(WallTime(seconds: 5))
        #expect(time.wallNow() == WallTime(seconds: 5))
        #expect(time.now() == .zero + .milliseconds(2500))
    }
}
