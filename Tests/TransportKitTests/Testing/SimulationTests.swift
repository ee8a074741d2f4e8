import Testing
import TransportKit
import TransportKitTesting

@Suite struct SimulationTests {
    private actor Tally {
        nonisolated let executor: ManualExecutor
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        private(set) var count = 0

        init(executor: ManualExecutor) { self.executor = executor }

        func add() { count += 1 }

        nonisolated func addFromOutside() { assumeIsolated { $0.count += 1 } }
    }

    @Test func `Nothing runs until it is drained, and then in the order it came`() {
        let executor = ManualExecutor()
        let log = RecordingLog()
        for number in 0..<3 {
            Task(executorPreference: executor) { log.write(level: .info, subsystem: "", message: "\(number)") }
        }
        #expect(log.lines.isEmpty && executor.hasJobs)
        #expect(executor.drain() >= 3)
        #expect(log.lines.map(\.message) == ["0", "1", "2"])
        #expect(!executor.hasJobs)
    }

    @Test func `Actors run on it, and it knows its own jobs`() throws {
        let simulation = Simulation()
        let tally = Tally(executor: simulation.executor)
        let count = try simulation.run {
            await tally.add()
            tally.addFromOutside()
            return await tally.count
        }
        #expect(count == 2)
        #expect(simulation.executor.isIsolatingCurrentContext() == false)
    }

    @Test func `Time passes only while nothing else can run`() throws {
        let simulation = Simulation()
        let hour = try simulation.run {
            for _ in 0..<60 { try await simulation.time.sleep(for: .seconds(60)) }
            return simulation.time.now()
        }
        #expect(hour == .zero + .seconds(3600))
    }

    @Test func `What waits for ever is stuck, and is cancelled`() {
        let simulation = Simulation()
        let signal = Signal()
        let log = RecordingLog()
        let stuck = #expect(throws: Simulation.Stuck.self) {
            try simulation.run {
                if await !signal.wait() { log.write(level: .info, subsystem: "", message: "cancelled") }
            }
        }
        #expect(stuck?.description.contains("nothing is left to do") == true)
        #expect(log.lines.count == 1)
    }

    @Test func `What takes too long is stuck as well`() {
        let simulation = Simulation()
        #expect(throws: Simulation.Stuck.self) {
            try simulation.run(limit: .seconds(10)) { try await simulation.time.sleep(for: .seconds(11)) }
        }
        #expect(throws: CancellationError.self) { try simulation.run { throw CancellationError() } }
    }

    @Test func `Advancing stops at every deadline on the way`() {
        let simulation = Simulation()
        let log = RecordingLog()
        simulation.start {
            for _ in 0..<3 {
                try? await simulation.time.sleep(for: .seconds(1))
                log.write(level: .info, subsystem: "", message: "\(simulation.time.now() - .zero)")
            }
        }
        simulation.advance(by: .milliseconds(2500))
        #expect(log.lines.map(\.message) == ["1.0 seconds", "2.0 seconds"])
        #expect(simulation.time.now() == .zero + .milliseconds(2500))
        simulation.advance(by: .milliseconds(500))
        #expect(log.lines.count == 3)
    }

    @Test func `A seed brings the same numbers back`() {
        var one = SeededGenerator(seed: 42)
        var other = SeededGenerator(seed: 42)
        let numbers = (0..<100).map { _ in one.next() }
        #expect(numbers == (0..<100).map { _ in other.next() })
        #expect(Set(numbers).count == 100)
        var published = SeededGenerator(seed: 1_234_567)
        // SplitMix64's own test values.
        #expect(
            (0..<3).map { _ in published.next() } == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
            ])
    }
}
