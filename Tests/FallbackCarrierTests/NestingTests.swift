import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

@testable import FallbackCarrier

/// Fallbacks over fallbacks, and what a fallback says of itself when it is built.
@Suite struct NestingTests {
    private struct Chain {
        let simulation = Simulation()
        let journal = Journal()
        let network: MemoryNetwork
        private var listeners: [any Listener] = []

        init() {
            network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
        }

        mutating func carrier(
            _ name: String, _ script: ScriptedCarrier.Script, _ capabilities: Capabilities = [.streams],
            _ protection: Protection = .transport
        ) throws -> ScriptedCarrier {
            let transport = MemoryTransport(
                network: network, name: TransportName(rawValue: name), capabilities: capabilities)
            let url = try ServiceURL("wss://\(name).example/")
            listeners.append(
                try simulation.run { try await transport.listen(url.endpoint, options: ListenOptions()) })
            let carrier = ScriptedCarrier(
                name, transport: transport, url: url, protection: protection, time: simulation.time, journal: journal)
            carrier.script = script
            return carrier
        }

        func fallback(_ primary: any Carrier, _ secondary: any Carrier) throws -> FallbackCarrier {
            try FallbackCarrier(
                primary: primary, secondary: DeferredCarrier(secondary), executor: simulation.executor,
                time: simulation.time)
        }

        /// Opens a session, says who carries it and when, and closes everything.
        func open(_ carrier: FallbackCarrier) throws -> (TransportName, Duration) {
            let socket = try simulation.run { try await carrier.open() }
            let found = (socket.info.transport, simulation.time.now() - .zero)
            simulation.start { [listeners] in
                await carrier.close()
                for listener in listeners { await listener.close() }
            }
            simulation.advance(by: .seconds(60))
            return found
        }
    }

    @Test func `A third carrier gets its turn, whichever way they are nested`() throws {
        for isLeft in [true, false] {
            var chain = Chain()
            let (a, b) = (try chain.carrier("a", .hang), try chain.carrier("b", .hang))
            let c = try chain.carrier("c", .dial)
            // A secondary has nobody to hand over to: of two that are silent the outer one leaves the inner.
            let carrier =
                isLeft
                ? try chain.fallback(try chain.fallback(a, b), c) : try chain.fallback(a, try chain.fallback(b, c))
            let (name, time) = try chain.open(carrier)
            #expect(name == "c")
            #expect(time == (isLeft ? .seconds(11) : .seconds(10)))
        }
    }

    @Test func `The second of a fallback below gets its time`() throws {
        var chain = Chain()
        let (a, b) = (try chain.carrier("a", .hang), try chain.carrier("b", .dial))
        let c = try chain.carrier("c", .dial)
        let (name, time) = try chain.open(try chain.fallback(try chain.fallback(a, b), c))
        #expect(name == "b" && time == .seconds(5))
    }

    @Test func `It can do what both can, and two that do not protect alike are refused`() throws {
        var chain = Chain()
        let a = try chain.carrier("a", .dial, [.streams, .datagrams])
        let b = try chain.carrier("b", .dial, [.streams, .text])
        let carrier = try chain.fallback(a, b)
        #expect(carrier.capabilities == [.streams])
        #expect(carrier.protection == .transport)
        let plain = try chain.carrier("c", .dial, [.streams], .none)
        #expect(throws: TransportError.self) { try chain.fallback(a, plain) }
        _ = try chain.open(carrier)
    }
}
