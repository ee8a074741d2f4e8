import DirectCarrier
import FallbackCarrier
import MemoryTransport
import MuxCarrier
import NoiseCarrier
import TransportKit
import TransportKitTesting

extension CarrierUnderTest {
    /// The one list of what is tested.
    static let all = [direct, mux, noise, fallback, fallen, chain, roomForOne]

    static let direct = CarrierUnderTest(name: "direct") { try await MemoryPeer().rig { try $0.direct() } }

    static let mux = CarrierUnderTest(name: "mux") {
        let peer = try await MemoryPeer(capabilities: [])
        return try peer.rig({ try $0.mux(over: try $0.direct()) }, accept: peer.unmuxed)
    }

    static let noise = CarrierUnderTest(name: "noise") {
        let peer = try await MemoryPeer()
        return try peer.rig({ $0.noise(over: try $0.direct()) }, accept: peer.unsealed)
    }

    /// A fallback whose primary carries.
    static let fallback = CarrierUnderTest(name: "fallback") {
        try await MemoryPeer().rig { try $0.fallback(primary: try $0.direct(), secondary: try $0.direct()) }
    }

    /// A fallback whose secondary carries.
    static let fallen = CarrierUnderTest(name: "fallback on its secondary") {
        try await MemoryPeer().rig { peer in
            let deaf = MemoryTransport(network: peer.network, name: "deaf")
            return try peer.fallback(primary: try peer.direct(over: deaf), secondary: try peer.direct())
        }
    }

    /// Streams over a seal over a fallback.
    static let chain = CarrierUnderTest(name: "mux over noise over fallback") {
        let peer = try await MemoryPeer(capabilities: [])
        return try peer.rig(
            {
                let fallback = try $0.fallback(primary: try $0.direct(), secondary: try $0.direct())
                return try $0.mux(over: $0.noise(over: fallback))
            },
            accept: { try await peer.multiplexer.wrap(peer.unsealed(), isDialer: false, limits: Limits()) })
    }

    /// One that keeps a single session.
    static let roomForOne = CarrierUnderTest(name: "room for one", hasRoomForMany: false) {
        try await MemoryPeer().rig { MutantCarrier(try $0.direct(), mutation: nil, hasRoomForMany: false) }
    }
}

/// A peer on a network in memory, and the carriers that reach it.
struct MemoryPeer: Sendable {
    let network: MemoryNetwork
    let executor = QueueExecutor()
    let multiplexer: YamuxMultiplexer
    private let time = MachineTime()
    private let transport: MemoryTransport
    private let listener: any Listener
    private let appKey = StaticPrivateKey()
    private let boxKey = StaticPrivateKey()

    init(capabilities: Capabilities = [.streams, .text]) async throws {
        network = MemoryNetwork(time: time)
        transport = MemoryTransport(network: network, capabilities: capabilities)
        multiplexer = YamuxMultiplexer(executor: executor, time: time)
        let host = Host("service.example") ?? .ipv4(.loopback)
        listener = try await transport.listen(
            Endpoint(scheme: .wss, host: host, port: 443), options: ListenOptions())
    }

    // MARK: - Carriers

    func direct(over other: MemoryTransport? = nil) throws -> DirectCarrier {
        try DirectCarrier(
            url: ServiceURL(listener.endpoint), transports: [other ?? transport],
            context: BuildContext(executor: executor, time: time))
    }

    func mux(over inner: any Carrier) throws -> MuxCarrier { MuxCarrier(over: inner, executor: executor, time: time) }

    func noise(over inner: any Carrier) -> NoiseCarrier {
        NoiseCarrier(over: inner, key: appKey, peer: boxKey.publicKey, executor: executor, time: time)
    }

    func fallback(primary: any Carrier, secondary: any Carrier) throws -> FallbackCarrier {
        try FallbackCarrier(
            primary: primary, secondary: DeferredCarrier(secondary), settings: Self.patient, executor: executor,
            time: time)
    }

    /// The silences of the suite may be long where the machine is busy.
    private static var patient: FallbackSettings {
        var settings = FallbackSettings()
        settings.recovery = .seconds(60)
        return settings
    }

    // MARK: - The peer's end

    func unmuxed() async throws -> any Socket {
        await multiplexer.wrap(try await listener.accept(), isDialer: false, limits: Limits())
    }

    func unsealed() async throws -> any Socket {
        let acceptor = NoiseAcceptor(key: boxKey, executor: executor, time: time) { [appKey] peer, _ in
            peer == appKey.publicKey
        }
        return try await acceptor.accept(try await listener.accept())
    }

    func rig(
        _ make: (MemoryPeer) throws -> any Carrier, accept: (@Sendable () async throws -> any Socket)? = nil
    ) rethrows -> CarrierRig {
        let carrier = try make(self)
        return CarrierRig(
            carrier: carrier, accept: accept ?? { [listener] in try await listener.accept() },
            dials: { [network, name = transport.name] in network.dials.filter { $0.transport == name }.count },
            silence: { [network, name = transport.name] isSilent in network.change(name) { $0.isSilent = isSilent } },
            tearDown: { [listener] in
                await (carrier as? MutantCarrier)?.tearDown()
                await listener.close()
            })
    }
}
