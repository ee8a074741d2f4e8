import Testing
import TransportHost
import TransportKit
import TransportKitTesting

@Suite struct TimeoutsTests {
    @Test func `What ends in time is let alone, what does not is told, each after its own start`() throws {
        let simulation = Simulation()
        let time = simulation.time
        let timeouts = Timeouts(limit: .seconds(10), time: time)
        let keeper = simulation.start { await timeouts.run() }
        let ends = try simulation.run {
            let early = try await timeouts.run {
                5
            } fire: {
                Issue.record("it was in time")
            }
            #expect(early == 5)
            return await withTaskGroup(of: Duration.self) { group in
                for start in [0, 3, 8] {
                    group.addTask {
                        try? await time.sleep(for: .seconds(start))
                        let fired = Signal()
                        await #expect(throws: Timeouts.Passed.self) {
                            try await timeouts.run {
                                _ = await fired.wait()
                            } fire: {
                                fired.signal()
                            }
                        }
                        return time.now() - .zero
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
        }
        #expect(ends == [.seconds(10), .seconds(13), .seconds(18)])
        #expect(timeouts.count == 0)
        keeper.cancel()
        simulation.drain()
    }

    @Test func `The error of what failed in time is passed on`() throws {
        struct Failed: Error {}
        let simulation = Simulation()
        let timeouts = Timeouts(limit: .seconds(10), time: simulation.time)
        try simulation.run {
            await #expect(throws: Failed.self) {
                try await timeouts.run {
                    throw Failed()
                } fire: {
                    Issue.record("it was in time")
                }
            }
        }
        #expect(timeouts.count == 0)
    }
}
