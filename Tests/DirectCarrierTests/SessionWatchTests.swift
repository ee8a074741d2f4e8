import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// When a session has proven that its path carries.
@Suite struct SessionWatchTests {
    private final class Count: Sendable {
        private let count = Atomic(0)
        var value: Int { count.load(ordering: .relaxed) }
        func add() { count.add(1, ordering: .relaxed) }
    }

    private let simulation = Simulation()
    private let lasted = Count()
    private let watch: SessionWatch

    /// One that something has arrived on.
    init() {
        watch = SessionWatch(
            time: simulation.time, executor: simulation.executor, lasting: .seconds(300)
        ) { [lasted] event in
            if case .lasted = event { lasted.add() }
        }
        watch.arrived()
        simulation.drain()
    }

    @Test func `Time that this end slept through proves nothing`() {
        // In one step, as the clock goes that counts on while the machine is suspended.
        simulation.time.advance(by: .seconds(3600))
        simulation.drain()
        #expect(lasted.value == 0)
        simulation.advance(by: .seconds(299))
        #expect(lasted.value == 0)
        simulation.advance(by: .seconds(1))
        #expect(lasted.value == 1)
        simulation.advance(by: .seconds(3600))
        #expect(lasted.value == 1)
    }

    @Test func `A session that has ended does not last`() {
        simulation.advance(by: .seconds(299))
        watch.ended(Close(.pathLost, origin: .path))
        simulation.advance(by: .seconds(3600))
        #expect(lasted.value == 0)
    }
}
