import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// When a session has proven that its path carries.
@Suite struct SessionWatchTests {
    @Test func `Time that this end slept through proves nothing`() {
        let simulation = Simulation()
        let lasted = Atomic(0)
        let watch = SessionWatch(
            time: simulation.time, executor: simulation.executor, lasting: .seconds(300)
        ) { event in
            if case .lasted = event { lasted.add(1, ordering: .relaxed) }
        }
        watch.arrived()
        simulation.drain()
        // In one step, as the clock goes that counts on while the machine is suspended.
        simulation.time.advance(by: .seconds(3600))
        simulation.drain()
        #expect(lasted.load(ordering: .relaxed) == 0)
        simulation.advance(by: .seconds(299))
        #expect(lasted.load(ordering: .relaxed) == 0)
        simulation.advance(by: .seconds(1))
        #expect(lasted.load(ordering: .relaxed) == 1)
        simulation.advance(by: .seconds(3600))
        #expect(lasted.load(ordering: .relaxed) == 1)
    }

    @Test func `A session that has ended does not last`() {
        let simulation = Simulation()
        let lasted = Atomic(0)
        let watch = SessionWatch(
            time: simulation.time, executor: simulation.executor, lasting: .seconds(300)
        ) { event in
            if case .lasted = event { lasted.add(1, ordering: .relaxed) }
        }
        watch.arrived()
        simulation.advance(by: .seconds(299))
        watch.ended(Close(.pathLost, origin: .path))
        simulation.advance(by: .seconds(3600))
        #expect(lasted.load(ordering: .relaxed) == 0)
    }
}
