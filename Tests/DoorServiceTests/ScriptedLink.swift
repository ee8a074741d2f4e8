import NoiseCarrier
import TransportKit
import TunnelCarrier

@testable import DoorService

/// The other end of one link, which says exactly what it is told to and writes down what it hears.
class ScriptedLink {
    let world: DoorWorld
    let key: StaticPrivateKey
    let leg: DoorLeg
    private(set) var link: UInt64 = 0
    private var handshake: InitiatorHandshake?
    private var seal: ControlSeal?
    /// The payload of message 2.
    var welcome: Bytes?
    var controls: [DoorControl] = []
    var frames: [TunnelFrame] = []
    /// What was said, in order, in words.
    var heard: [String] = []
    /// Message 1 as it went over the wire.
    private(set) var message1 = Bytes()

    init(_ world: DoorWorld, key: StaticPrivateKey, leg: DoorLeg) {
        self.world = world
        self.key = key
        self.leg = leg
    }

    var close: CloseCode? { world.closes[link] }
    private var hears: DoorWay { leg == .app ? .doorToClient : .doorToBox }

    /// Opens a link and says hello; whether the door answered.
    func dial(_ hello: Bytes, doorKey: StaticPublicKey? = nil, from address: AddressKey? = nil) throws -> Bool {
        guard let link = world.open(leg, from: address) else { return false }
        self.link = link
        let handshake = try InitiatorHandshake(
            key: key, peer: doorKey ?? world.keys[0].publicKey, prologue: leg.reads.prologue, payload: hello)
        message1 = DoorMessage.handshake(handshake.message1).encoded()
        self.handshake = consume handshake
        send(message1)
        hear()
        return welcome != nil
    }

    func send(_ bytes: Bytes, delivery: Delivery = .control) { world.send(bytes, delivery: delivery, on: link) }

    func say(_ control: DoorControl) throws {
        guard let sealed = try seal?.seal(control) else { return }
        send(sealed)
    }

    func send(_ frame: TunnelFrame) { send(frame.encoded(), delivery: frame.kind.delivery) }

    /// Reads what the door has sent.
    func hear() {
        for message in world.take(link) { hear(message) }
    }

    func hear(_ message: Message) {
        do {
            switch try DoorMessage.decode(message.payload, hears, isDatagram: message.delivery == .unreliable) {
            case .handshake(let message2):
                guard let session = try handshake?.finish(reading: message2) else { return }
                welcome = session.payload
                seal = ControlSeal(session, reads: hears)
                heard.append("message 2")
            case .sealed(let sealed):
                guard let control = try seal?.open(sealed) else { return }
                controls.append(control)
                heard.append("\(control)".prefix { $0 != "(" }.description)
            case .frame(let frame):
                frames.append(frame)
                heard.append(frame.isEnd ? "end" : frame.kind.name)
            case .unknown(let kind):
                heard.append("unknown \(kind)")
            }
        } catch {
            heard.append("\(error)")
        }
    }

    /// Takes what was heard since the last time.
    func takeHeard() -> [String] {
        hear()
        defer { heard = [] }
        return heard
    }

    func end() { world.end(link) }
}

/// A client of a home.
final class ScriptedClient: ScriptedLink {
    let home: HomeID
    var device: DeviceID { DeviceID(of: key.publicKey) }

    init(_ world: DoorWorld, key: StaticPrivateKey = StaticPrivateKey(), home: HomeID) {
        self.home = home
        super.init(world, key: key, leg: .app)
    }

    /// Dials and says hello.
    func dial(
        tun: TunnelSessionID? = nil, pair: PairingHash? = nil, window: UInt32 = DoorLimits.defaultWindow,
        doorKey: StaticPublicKey? = nil, from address: AddressKey? = nil
    ) throws -> Bool {
        let first = tun.map { TunnelFrame(.begin, session: $0, payload: [1, 2, 3]) }
        let hello = ClientHello(home: home, pair: pair, tun: first, window: window)
        return try dial(hello.encoded(), doorKey: doorKey, from: address)
    }

    /// Dials and enters.
    @discardableResult
    func come(tun: TunnelSessionID? = nil, pair: PairingHash? = nil) throws -> Bool {
        guard try dial(tun: tun, pair: pair) else { return false }
        try say(.enter)
        hear()
        return controls.contains(.entered)
    }

    func begin(_ session: TunnelSessionID) { send(TunnelFrame(.begin, session: session, payload: [1, 2, 3])) }

    func frame(_ kind: TunnelFrame.Kind, _ session: TunnelSessionID, bytes: Int = 10) -> TunnelFrame {
        TunnelFrame(kind, session: session, payload: Bytes(repeating: 7, count: bytes))
    }
}

/// The box of a home.
final class ScriptedBox: ScriptedLink {
    var home: HomeID { HomeID(of: key.publicKey) }

    init(_ world: DoorWorld, key: StaticPrivateKey = StaticPrivateKey()) {
        super.init(world, key: key, leg: .box)
    }

    func dial(
        takesTunnel: Bool = true, window: UInt32 = DoorLimits.defaultWindow, doorKey: StaticPublicKey? = nil,
        from address: AddressKey? = nil
    ) throws -> Bool {
        guard let capabilities = BoxCapabilities(takesTunnel ? ["tun"] : []) else { return false }
        let hello = BoxHello(window: window, capabilities: capabilities)
        return try dial(hello.encoded(), doorKey: doorKey, from: address)
    }

    /// Dials and names its devices.
    @discardableResult
    func come(
        _ devices: [StaticPublicKey], takesTunnel: Bool = true, window: UInt32 = DoorLimits.defaultWindow
    ) throws -> Bool {
        guard try dial(takesTunnel: takesTunnel, window: window) else { return false }
        try say(.roster(DeviceKeys(devices), more: false))
        hear()
        return controls.contains(.linked)
    }

    func frame(
        _ kind: TunnelFrame.Kind, _ device: DeviceID, _ session: TunnelSessionID, bytes: Int = 10
    ) -> TunnelFrame {
        TunnelFrame(kind, device: device, session: session, payload: Bytes(repeating: 8, count: bytes))
    }
}
