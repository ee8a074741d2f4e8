import DoorService
import MemoryTransport
import MuxCarrier
import NoiseCarrier
import Synchronization
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// What ``TunnelRig`` has, with a real door between.
final class ThroughDoor: Sendable {
    let rig = TunnelRig()
    private let app: MemoryTransport
    private let box: MemoryTransport
    private let door: Mutex<Door?>

    init() {
        app = MemoryTransport(network: rig.network, name: "app", capabilities: [.datagrams])
        box = MemoryTransport(network: rig.network, name: "box", capabilities: [.datagrams])
        door = Mutex(
            try? Door(keys: [rig.doorKey], executor: rig.simulation.executor, time: rig.simulation.time))
    }

    func run(_ body: @escaping @Sendable () async throws -> Void) throws { try rig.run(body) }

    private func url(isBox: Bool) throws -> ServiceURL {
        try ServiceURL("wss://door.example\(isBox ? "/v1/box" : "/v1/app")")
    }

    func openDoor() async throws {
        for isBox in [false, true] {
            guard let door = door.withLock({ $0 }) else { throw Close(.internalError, origin: .local) }
            let service = isBox ? door.boxService : door.appService
            let listener = try await (isBox ? box : app).listen(url(isBox: isBox).endpoint, options: ListenOptions())
            rig.simulation.start { [simulation = rig.simulation] in
                while let socket = try? await listener.accept() {
                    simulation.start { await service.serve(socket, target: socket.info.target) }
                }
            }
        }
    }

    func dials(isBox: Bool) -> Int { rig.network.dials.count { $0.transport == (isBox ? "box" : "app") } }

    func vanishBox() { rig.network.vanish("box") }

    func sealed(_ key: StaticPrivateKey, code: Bytes = Bytes()) -> NoiseCarrier {
        let (simulation, home) = (rig.simulation, HomeID(of: rig.box.publicKey))
        var settings = TunnelSettings(key: key, home: home, doorKeys: [rig.doorKey.publicKey])
        settings.pairingCode = { code }
        guard let url = try? url(isBox: false) else { preconditionFailure("the URL is one") }
        let tunnel = TunnelCarrier(
            through: DialingCarrier(app, url: url), settings: settings, executor: simulation.executor,
            time: simulation.time, random: { 0.5 })
        return rig.sealed(over: tunnel, key, code: code)
    }

    func muxed() -> MuxCarrier {
        MuxCarrier(over: sealed(rig.device), executor: rig.simulation.executor, time: rig.simulation.time)
    }

    func uplink() throws -> BoxUplink {
        BoxUplink(
            through: DialingCarrier(box, url: try url(isBox: true)), key: rig.box, doorKeys: [rig.doorKey.publicKey],
            admission: rig.admission, executor: rig.simulation.executor, time: rig.simulation.time, random: { 0.5 })
    }

    /// Keeps a box linked that sends messages and streams back.
    func streams(_ uplink: BoxUplink) async -> Task<Void, Never> {
        let multiplexer = YamuxMultiplexer(executor: rig.simulation.executor, time: rig.simulation.time)
        return await rig.serve(uplink) { sealed in
            let socket = await multiplexer.wrap(sealed, isDialer: false, limits: Limits())
            await withDiscardingTaskGroup { group in
                group.addTask {
                    while let batch = try? await socket.receive(), (try? await socket.send(batch)) != nil {}
                }
                while let stream = try? await socket.acceptStream() {
                    group.addTask {
                        while let bytes = try? await stream.read(upTo: 65_536), (try? await stream.write(bytes)) != nil
                        {}
                        try? await stream.finish()
                    }
                }
            }
        }
    }

    /// Reads a stream to its end: how many bytes, and their sum.
    func read(_ stream: any Stream) async throws -> (count: Int, sum: Int) {
        var (count, sum) = (0, 0)
        while let bytes = try await stream.read(upTo: 1 << 20) {
            count += bytes.count
            sum += bytes.reduce(0) { $0 + Int($1) }
        }
        return (count, sum)
    }
}
