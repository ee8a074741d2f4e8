import NoiseCarrier
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// A door that a test scripts: it shakes hands, passes frames on, and keeps what it saw. It bounds nothing.
actor FakeDoor {
    /// What it does, and does not do.
    struct Script: Sendable {
        /// Whether it answers handshakes.
        var answers = true
        /// Whether it lets clients in.
        var enters = true
        /// What it says the box can take; nil for what the box has said.
        var capabilities: BoxCapabilities?
        var passesToBox = true
        /// Whether it says to clients that it is there.
        var answersChecks = true
        /// Changes what it passes on.
        var change: @Sendable (TunnelFrame) -> TunnelFrame = { $0 }
    }

    /// One link, with the keys of its handshake.
    final class Link {
        let socket: any Socket
        let peer: StaticPublicKey
        var seal: ControlSeal
        var isIn = false

        init(_ socket: any Socket, peer: StaticPublicKey, seal: consuming ControlSeal) {
            self.socket = socket
            self.peer = peer
            self.seal = seal
        }

        func say(_ control: DoorControl) async {
            guard let message = try? seal.seal(control) else { return }
            try? await socket.send(Message(message))
        }

        func pass(_ frame: TunnelFrame) async {
            try? await socket.send(Message(frame.encoded(), delivery: frame.kind.delivery))
        }
    }

    private nonisolated let executor: ManualExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    let keys: [StaticPrivateKey]
    var script = Script()
    /// What it has seen.
    private(set) var hellos: [ClientHello] = []
    private(set) var boxHellos: [BoxHello] = []
    /// In the order in which it came: what clients, and boxes, have said and sent.
    private(set) var fromClients: [TunnelFrame] = []
    private(set) var fromBoxes: [TunnelFrame] = []
    private(set) var saidByClients: [DoorControl] = []
    private(set) var saidByBoxes: [DoorControl] = []
    /// The first messages of links that no key opened, and all of them.
    private(set) var refusals = 0
    private(set) var raw: [Bytes] = []

    var client: Link?
    var box: Link?
    private var capabilities: BoxCapabilities?
    /// The sessions that clients have begun: nothing else is passed to them.
    private var begun: Set<TunnelSessionID> = []

    init(_ keys: [StaticPrivateKey], executor: ManualExecutor) {
        self.keys = keys
        self.executor = executor
    }

    func set(_ change: @Sendable (inout Script) -> Void) { change(&script) }

    /// Serves whoever comes, until the listener closes.
    func serve(_ listener: any Listener, isBox: Bool) async {
        await withDiscardingTaskGroup { group in
            while let socket = try? await listener.accept() {
                group.addTask { await self.serve(socket, isBox: isBox) }
            }
        }
    }

    private func serve(_ socket: any Socket, isBox: Bool) async {
        var link: Link?
        while let batch = try? await socket.receive() {
            for message in batch {
                guard let link else {
                    guard script.answers else { continue }
                    link = await greet(socket, message, isBox: isBox)
                    if link == nil { return }
                    continue
                }
                await received(message, on: link, isBox: isBox)
            }
        }
        if isBox, box === link {
            box = nil
            await client?.say(.box(nil))
        }
        if !isBox, client === link { client = nil }
    }

    private func greet(_ socket: any Socket, _ message: Message, isBox: Bool) async -> Link? {
        let way: DoorWay = isBox ? .boxToDoor : .clientToDoor
        raw.append(message.payload)
        guard case .handshake(let message1) = try? DoorMessage.decode(message.payload, way) else { return nil }
        for key in keys {
            guard let handshake = try? ResponderHandshake(key: key, prologue: way.prologue, reading: message1) else {
                continue
            }
            let (peer, payload) = (handshake.peer, handshake.payload)
            var tun: TunnelFrame?
            let welcome: Bytes
            if isBox {
                guard let hello = try? BoxHello(payload) else { return nil }
                boxHellos.append(hello)
                capabilities = hello.capabilities
                welcome = BoxWelcome(window: DoorLimits.window.upperBound).encoded()
            } else {
                guard let hello = try? ClientHello(payload) else { return nil }
                hellos.append(hello)
                tun = hello.tun
                welcome = ClientWelcome(
                    window: DoorLimits.window.upperBound, box: box?.isIn == true ? served : nil
                ).encoded()
            }
            guard let answer = try? handshake.answer(payload: welcome) else { return nil }
            let message2 = answer.message2
            let link = Link(socket, peer: peer, seal: ControlSeal(answer.begin(), reads: way))
            try? await socket.send(Message(DoorMessage.handshake(message2).encoded()))
            if isBox {
                let old = box
                box = link
                if let socket = old?.socket {
                    Task(executorPreference: executor) { _ = await socket.close(.displaced, reason: "") }
                }
            } else {
                client = link
                if let tun { await toBox(tun, from: link) }
            }
            return link
        }
        refusals += 1
        await socket.close(.refused, reason: "")
        return nil
    }

    private var served: BoxCapabilities? { script.capabilities ?? capabilities }

    private func received(_ message: Message, on link: Link, isBox: Bool) async {
        let way: DoorWay = isBox ? .boxToDoor : .clientToDoor
        switch try? DoorMessage.decode(message.payload, way, isDatagram: message.delivery == .unreliable) {
        case .sealed(let sealed):
            guard let control = try? link.seal.open(sealed) else { return }
            if isBox { saidByBoxes.append(control) } else { saidByClients.append(control) }
            switch control {
            case .enter:
                if script.enters { await link.say(.entered) }
            case .check(let nonce):
                if isBox || script.answersChecks { await link.say(.here(nonce: nonce)) }
            case .roster(_, more: false):
                link.isIn = true
                await link.say(.linked)
                await client?.say(.box(served))
            case _: break
            }
        case .frame(let frame):
            if isBox {
                fromBoxes.append(frame)
                guard let client, frame.device == DeviceID(of: client.peer), begun.contains(frame.session) else {
                    return
                }
                var passed = script.change(frame)
                passed.device = nil
                await client.pass(passed)
            } else {
                await toBox(frame, from: link)
            }
        case .handshake, .unknown, nil:
            break
        }
    }

    private func toBox(_ frame: TunnelFrame, from link: Link) async {
        fromClients.append(frame)
        if frame.kind == .begin { begun.insert(frame.session) }
        guard let box, box.isIn else {
            if !frame.isEnd { await link.pass(.end(session: frame.session)) }
            return
        }
        // Toward a box that takes no sessions nothing is said.
        guard script.passesToBox, served?.contains(BoxCapabilities.tunnel) == true else { return }
        var passed = script.change(frame)
        passed.device = DeviceID(of: link.peer)
        await box.pass(passed)
    }

    // MARK: - By hand

    var hasClient: Bool { client != nil }
    var hasBox: Bool { box != nil }

    func toClient(_ frame: TunnelFrame) async { await client?.pass(frame) }

    func toBox(_ frame: TunnelFrame, as device: DeviceID) async {
        var frame = frame
        frame.device = device
        await box?.pass(frame)
    }

    func sayToClient(_ control: DoorControl) async { await client?.say(control) }

    func closeClient(_ code: CloseCode) async { await client?.socket.close(code, reason: "") }

    func closeBox(_ code: CloseCode) async { await box?.socket.close(code, reason: "") }
}
