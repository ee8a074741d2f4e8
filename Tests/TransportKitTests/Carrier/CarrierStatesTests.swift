import Testing
import TransportKit
import TransportKitTesting

@Suite struct CarrierStatesTests {
    let end = CarrierState.closed(Close(.normal, origin: .local))

    @Test func `A reader gets the latest first and then every change that it has time for`() throws {
        let simulation = Simulation()
        let source = CarrierStateSource()
        source.set(.connecting(attempt: 1))
        let reader = simulation.start { () -> [CarrierState] in
            var seen: [CarrierState] = []
            for await state in source.states { seen.append(state) }
            return seen
        }
        simulation.drain()
        source.set(.connecting(attempt: 1))
        source.set(.connecting(attempt: 2))
        simulation.drain()
        // Replaced before the reader looked.
        source.set(.connecting(attempt: 3))
        source.set(.connecting(attempt: 4))
        simulation.drain()
        source.set(end)
        source.set(.idle)
        let seen = try simulation.run { await reader.value }
        #expect(
            seen == [.connecting(attempt: 1), .connecting(attempt: 2), .connecting(attempt: 4), end])
        #expect(source.latest == end)
    }

    @Test func `Readers have their own places`() async {
        let source = CarrierStateSource()
        var early = source.states.makeAsyncIterator()
        #expect(await early.next() == .idle)
        source.set(end)
        var late = source.states.makeAsyncIterator()
        #expect(await late.next() == end)
        #expect(await late.next() == nil)
        #expect(await early.next() == end)
        #expect(await early.next() == nil)
    }

    @Test func `A cancelled reader ends, and the others go on`() throws {
        let simulation = Simulation()
        let source = CarrierStateSource()
        let readers = (0..<2).map { _ in
            simulation.start { () -> Int in
                var count = 0
                for await _ in source.states { count += 1 }
                return count
            }
        }
        simulation.drain()
        readers[0].cancel()
        #expect(try simulation.run { await readers[0].value } == 1)
        source.set(.connecting(attempt: 1))
        simulation.drain()
        source.set(end)
        #expect(try simulation.run { await readers[1].value } == 3)
    }

    @Test func `States read as a person would say them`() {
        // R137
        #expect("\(CarrierState.open(CarrierPath(carrier: "direct", transport: .quic)))" == "Connected · QUIC")
        #expect(
            "\(CarrierState.open(CarrierPath(carrier: "direct", transport: .webSocket)))" == "Connected · WebSocket")
        #expect("\(CarrierState.connecting(attempt: 1))" == "Connecting")
        #expect("\(CarrierState.connecting(attempt: 3))" == "Connecting · attempt 3")
        #expect("\(end)" == "Closed · 1000 normal")
    }
}
