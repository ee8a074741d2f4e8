import MemoryTransport
import NoiseCarrier
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// A client, a door and a box on a network in memory, in simulated time. The chain of the client is the one it is made for:
/// sealed end to end over the tunnel.
final class TunnelRig: Sendable {
    let simulation = Simulation()
    let network: MemoryNetwork
    let device = StaticPrivateKey()
    let box = StaticPrivateKey()
    let doorKey = StaticPrivateKey()
    let door: FakeDoor
    let admission = Roster()
    let metrics = InProcessMetrics()
    private let transport: MemoryTransport

    /// - Parameter doorKeys: what keys the door has; its usual one where nothing is given.
    init(doorKeys: [StaticPrivateKey] = []) {
        network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
        transport = MemoryTransport(network: network, capabilities: [.datagrams])
        door = FakeDoor(doorKeys.isEmpty ? [doorKey] : doorKeys, executor: simulation.executor)
        admission.keys.withLock { $0 = [device.publicKey] }
    }

    /// Checks keep the time going for ever, so a test that waits for nothing ends here.
    func run(_ body: @escaping @Sendable () async throws -> Void) throws {
        try simulation.run(limit: .seconds(3_600), body)
    }

    private func url(isBox: Bool) throws -> ServiceURL {
        try ServiceURL(isBox ? "wss://door.example:2/v1/box" : "wss://door.example:1/v1/app")
    }

    /// Has the door serve both legs.
    func openDoor() async throws {
        for isBox in [false, true] {
            let listener = try await transport.listen(url(isBox: isBox).endpoint, options: ListenOptions())
            simulation.start { [door] in await door.serve(listener, isBox: isBox) }
        }
    }

    func dialer(isBox: Bool = false) throws -> DialingCarrier { DialingCarrier(transport, url: try url(isBox: isBox)) }

    func tunnel(_ key: StaticPrivateKey? = nil, _ change: (inout TunnelSettings) -> Void = { _ in }) throws
        -> TunnelCarrier
    {
        var settings = TunnelSettings(
            key: key ?? device, home: HomeID(of: box.publicKey), doorKeys: [doorKey.publicKey])
        change(&settings)
        return TunnelCarrier(
            through: try dialer(), settings: settings, executor: simulation.executor, time: simulation.time,
            metrics: metrics, random: { 0.5 })
    }

    func sealed(over tunnel: TunnelCarrier, _ key: StaticPrivateKey? = nil, code: Bytes = Bytes()) -> NoiseCarrier {
        var settings = NoiseSettings()
        settings.payload = { code }
        return NoiseCarrier(
            over: tunnel, key: key ?? device, peer: box.publicKey, settings: settings, executor: simulation.executor,
            time: simulation.time, random: { 0.5 })
    }

    func uplink(_ change: (inout BoxSettings) -> Void = { _ in }) throws -> BoxUplink {
        var settings = BoxSettings()
        change(&settings)
        return BoxUplink(
            through: try dialer(isBox: true), key: box, doorKeys: [doorKey.publicKey], settings: settings,
            admission: admission, executor: simulation.executor, time: simulation.time, metrics: metrics,
            random: { 0.5 })
    }

    /// Keeps a box linked that sends everything back, and waits until the home is served.
    func echo(_ uplink: BoxUplink) async -> Task<Void, Never> {
        await serve(uplink) { socket in
            while let batch = try? await socket.receive(), (try? await socket.send(batch)) != nil {}
        }
    }

    func serve(
        _ uplink: BoxUplink, _ serve: @escaping @Sendable (NoiseSocket) async -> Void
    ) async -> Task<Void, Never> {
        let running = simulation.start { await uplink.run(serve) }
        for await state in uplink.states { if case .open = state { break } }
        return running
    }

    /// Sends, and waits for the echo.
    func echoes(_ socket: any Socket, _ text: String = "hello", _ delivery: Delivery = .control) async throws -> Bool {
        try await socket.send(Message(Bytes(text), delivery: delivery))
        return try await socket.receive().map(\.payload) == [Bytes(text)]
    }

    func sleep(_ duration: Duration) async throws { try await simulation.time.sleep(for: duration) }

    /// How a call failed; nil where it did not.
    func failure<Value>(_ body: () async throws -> Value) async -> Close? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? Close
        }
    }
}

/// The devices of a home, and the codes that let in others.
final class Roster: BoxAdmission {
    let keys = Mutex<Set<StaticPublicKey>>([])
    let codes = Mutex<Set<Bytes>>([])

    func roster() async -> [StaticPublicKey] { keys.withLock { Array($0) } }

    func admits(_ key: StaticPublicKey, code: Bytes) async -> Bool {
        if keys.withLock({ $0.contains(key) }) { return true }
        guard codes.withLock({ $0.remove(code) }) != nil else { return false }
        keys.withLock { _ = $0.insert(key) }
        return true
    }
}
