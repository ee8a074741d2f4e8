import MemoryTransport
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import FallbackCarrier

/// A tunnel and a relay on a network in memory, a peer that listens on both, and a fallback over them, in simulated time.
struct FallbackWorld {
    let simulation = Simulation()
    let network: MemoryNetwork
    let journal = Journal()
    let log = RecordingLog()
    let tunnel: ScriptedCarrier
    let carrier: FallbackCarrier
    private let listeners: [TransportName: any Listener]

    init(_ change: (inout FallbackSettings) -> Void = { _ in }) throws {
        let (simulation, journal) = (simulation, journal)
        network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
        var carriers: [ScriptedCarrier] = []
        var listeners: [TransportName: any Listener] = [:]
        for name in ["tunnel", "relay"] {
            let transport = MemoryTransport(network: network, name: TransportName(rawValue: name))
            let url = try ServiceURL("wss://\(name).example/")
            listeners[transport.name] = try simulation.run {
                try await transport.listen(url.endpoint, options: ListenOptions())
            }
            carriers.append(
                ScriptedCarrier(name, transport: transport, url: url, time: simulation.time, journal: journal))
        }
        self.listeners = listeners
        let relay = carriers[1]
        tunnel = carriers[0]
        var settings = FallbackSettings()
        change(&settings)
        let deferred = DeferredCarrier(capabilities: relay.capabilities, protection: relay.protection) {
            journal.write("relay is made", at: simulation.time.now())
            return relay
        }
        carrier = try FallbackCarrier(
            primary: tunnel, secondary: deferred, names: ("tunnel", "relay"), settings: settings,
            executor: simulation.executor, time: simulation.time, log: Log(level: .debug, sink: log), random: { 0.5 })
    }

    static func refused() -> Close { Close(.refused, reason: "not on the list", origin: .remote) }

    var now: Duration { simulation.time.now() - .zero }

    /// Whether the relay was dialled, or even made.
    var hasRelay: Bool { journal.words.contains { $0.hasPrefix("relay") } }

    /// When the relay was dialled first.
    var relayed: Duration? { journal.entries.first { $0.what == "relay opens" }.map { $0.at - .zero } }

    func open(firstFlight: Bytes? = nil) throws -> any Socket {
        try simulation.run { [carrier] in try await carrier.open(firstFlight: firstFlight) }
    }

    /// Starts to open, and lets what needs no time happen.
    func beginOpen() -> Task<Result<any Socket, Close>, Never> {
        let opening = simulation.start { [carrier] () async -> Result<any Socket, Close> in
            do throws(Close) { return .success(try await carrier.open()) } catch { return .failure(error) }
        }
        simulation.drain()
        return opening
    }

    /// The peer's end of the oldest session that it has not seen.
    func accept(_ name: TransportName) throws -> any Socket {
        try simulation.run { [listeners] in try await listeners[name]?.accept() ?? { throw Missing() }() }
    }

    struct Missing: Error {}

    /// A session of the tunnel on which the peer has said something.
    func carry() throws -> (near: any Socket, far: any Socket) {
        let near = try open()
        let far = try accept("tunnel")
        try answer(near, far)
        return (near, far)
    }

    func answer(_ near: any Socket, _ far: any Socket) throws {
        try simulation.run {
            try await far.send(Message([1]))
            _ = try await near.receive()
        }
    }

    /// How a session ends.
    func end(of socket: any Socket) throws -> Close? {
        try simulation.run { () async -> Close? in
            do throws(Close) { while true { _ = try await socket.receive() } } catch { return error }
        }
    }

    /// The peer ends a session, and its owner sees that.
    func drop(_ near: any Socket, _ far: any Socket, _ code: CloseCode = .goingAway) throws {
        simulation.start { _ = await far.close(code, reason: "") }
        #expect(try end(of: near)?.code == code)
    }

    func wake() throws { try simulation.run { [carrier] in await carrier.wake() } }

    /// Closes everything and lets it come to rest, so that no task outlives the test.
    func end() {
        simulation.start { [carrier, listeners] in
            await carrier.close()
            for listener in listeners.values { await listener.close() }
        }
        simulation.advance(by: .seconds(60))
    }
}
