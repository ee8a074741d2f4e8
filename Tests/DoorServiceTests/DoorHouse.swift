import MemoryTransport
import NoiseCarrier
import Synchronization
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// A door that listens on a network in memory, in simulated time.
final class DoorHouse: Sendable {
    let simulation = Simulation()
    let network: MemoryNetwork
    let transport: MemoryTransport
    let key = StaticPrivateKey()
    let metrics = InProcessMetrics()
    let lines = RecordingLog()
    let door: Door
    private let serving = Mutex<[Task<Void, Never>]>([])

    init(options: DoorOptions = DoorOptions()) throws {
        network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
        transport = MemoryTransport(network: network)
        door = try Door(
            keys: [key], options: options, executor: simulation.executor, time: simulation.time,
            log: Log(sink: lines), metrics: metrics)
    }

    /// Serves both targets until the listener is closed.
    func listen() async throws -> any Listener {
        let listener = try await transport.listen(
            try ServiceURL("wss://door.example/").endpoint, options: ListenOptions())
        let task = simulation.start { [self] in
            while let socket = try? await listener.accept() {
                let service = socket.info.target.path == DoorWay.boxToDoor.target ? door.boxService : door.appService
                let task = simulation.start { await service.serve(socket, target: socket.info.target) }
                serving.withLock { $0.append(task) }
            }
        }
        serving.withLock { $0.append(task) }
        return listener
    }

    /// Cancels whatever is served.
    func stop() {
        for task in serving.withLock({ $0 }) { task.cancel() }
    }

    func dial(_ leg: DoorLeg) async throws -> any Socket {
        let url = try ServiceURL("wss://door.example\(leg.reads.target)")
        return try await transport.dial(url, options: DialOptions())
    }
}

/// The other end of a link over a socket. One task uses it at a time.
final class LivePeer {
    let key: StaticPrivateKey
    let socket: any Socket
    private let leg: DoorLeg
    private var seal: ControlSeal?
    private var arrived: [Message] = []
    private(set) var controls: [DoorControl] = []
    private(set) var frames: [TunnelFrame] = []

    /// Dials and shakes hands.
    init(
        _ house: DoorHouse, _ leg: DoorLeg, key: StaticPrivateKey = StaticPrivateKey(), hello: Bytes
    ) async throws {
        self.key = key
        self.leg = leg
        socket = try await house.dial(leg)
        var handshake = try InitiatorHandshake(
            key: key, peer: house.key.publicKey, prologue: leg.reads.prologue, payload: hello)
        try await socket.send(Message(DoorMessage.handshake(handshake.message1).encoded()))
        let way: DoorWay = leg == .app ? .doorToClient : .doorToBox
        guard case .handshake(let message2) = try DoorMessage.decode(try await next().payload, way) else {
            throw Close(.internalError, origin: .local)
        }
        seal = ControlSeal(try handshake.finish(reading: message2), reads: way)
    }

    private func next() async throws -> Message {
        while arrived.isEmpty { arrived = try await socket.receive() }
        return arrived.removeFirst()
    }

    func say(_ control: DoorControl) async throws {
        guard let sealed = try seal?.seal(control) else { return }
        try await socket.send(Message(sealed))
    }

    func send(_ frame: TunnelFrame) async throws {
        try await socket.send(Message(frame.encoded(), delivery: frame.kind.delivery))
    }

    /// Reads until `isThere` holds.
    func hear(until isThere: (LivePeer) -> Bool) async throws {
        let way: DoorWay = leg == .app ? .doorToClient : .doorToBox
        while !isThere(self) {
            switch try DoorMessage.decode(try await next().payload, way) {
            case .sealed(let sealed): if let control = try seal?.open(sealed) { controls.append(control) }
            case .frame(let frame): frames.append(frame)
            case .handshake, .unknown: break
            }
        }
    }

    static func box(
        _ house: DoorHouse, key: StaticPrivateKey = StaticPrivateKey(), devices: [StaticPublicKey]
    ) async throws -> LivePeer {
        guard let capabilities = BoxCapabilities(["tun"]) else { throw Close(.internalError, origin: .local) }
        let hello = BoxHello(window: DoorLimits.defaultWindow, capabilities: capabilities).encoded()
        let box = try await LivePeer(house, .box, key: key, hello: hello)
        try await box.say(.roster(DeviceKeys(devices), more: false))
        try await box.hear { $0.controls.contains(.linked) }
        return box
    }

    static func client(
        _ house: DoorHouse, key: StaticPrivateKey, of box: LivePeer
    ) async throws -> LivePeer {
        let hello = ClientHello(home: HomeID(of: box.key.publicKey), window: DoorLimits.defaultWindow).encoded()
        let client = try await LivePeer(house, .app, key: key, hello: hello)
        try await client.say(.enter)
        try await client.hear { $0.controls.contains(.entered) }
        return client
    }
}
