import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// One end's conversation with a door, step by step: what breaks it, and what does not.
@Suite struct DoorSessionTests {
    /// A conversation and the door's keys of it.
    private final class Pair {
        var machine: DoorSession
        var seal: ControlSeal
        let address: TunnelAddress
        let isBox: Bool

        init(isBox: Bool, stands: Bool = true) throws {
            let (key, door, home) = (StaticPrivateKey(), StaticPrivateKey(), StaticPrivateKey())
            let session = TunnelSessionID.random()
            let window = DoorLimits.defaultWindow
            let end: DoorEnd =
                isBox
                ? .box(BoxHello(window: window, capabilities: .onlyTunnel), roster: [])
                : .client(
                    ClientHello(
                        home: HomeID(of: home.publicKey),
                        tun: TunnelFrame(.begin, session: session, payload: Bytes("first")), window: window))
            machine = try DoorSession(end, key: key, doorKeys: [door.publicKey])
            machine.opened(now: .zero)
            guard case .handshake(let message1) = try DoorMessage.decode(machine.message1, end.sends) else {
                throw Close(.internalError, origin: .local)
            }
            let welcome =
                isBox
                ? BoxWelcome(window: window).encoded() : ClientWelcome(window: window, box: .onlyTunnel).encoded()
            let answer = try ResponderHandshake(key: door, prologue: end.sends.prologue, reading: message1)
                .answer(payload: welcome)
            let message2 = Message(DoorMessage.handshake(answer.message2).encoded())
            seal = ControlSeal(answer.begin(), reads: end.sends)
            self.isBox = isBox
            address = TunnelAddress(device: isBox ? DeviceID(of: home.publicKey) : nil, session: session)
            machine.received([message2], now: .zero)
            if stands {
                try say(isBox ? .linked : .entered)
                if isBox { give(frame(.begin, 5)) }
            }
            _ = machine.takeEvents()
            _ = machine.outbox.next()
        }

        func frame(_ kind: TunnelFrame.Kind, _ count: Int) -> TunnelFrame {
            TunnelFrame(
                kind, device: address.device, session: address.session, payload: Bytes(repeating: 1, count: count))
        }

        func say(_ control: DoorControl) throws { machine.received([Message(try seal.seal(control))], now: .zero) }

        func give(_ frame: TunnelFrame) {
            machine.received([Message(frame.encoded(), delivery: frame.kind.delivery)], now: .zero)
        }

        /// With what the link is to be closed, if it is.
        var failure: CloseCode? {
            machine.takeEvents().compactMap { if case .failed(let close) = $0 { close.code } else { nil } }.first
        }

        /// The frames that go now.
        func sent() -> [TunnelFrame] {
            var frames: [TunnelFrame] = []
            while machine.outbox.isReady {
                for message in machine.outbox.next() {
                    if case .frame(let frame) = try? DoorMessage.decode(
                        message.payload, isBox ? .boxToDoor : .clientToDoor)
                    {
                        frames.append(frame)
                    }
                }
            }
            return frames
        }
    }

    @Test(arguments: [false, true])
    func `What breaks the rules ends the link with the right code`(isBox: Bool) throws {
        func failure(_ body: (Pair) throws -> Void) throws -> CloseCode? {
            let pair = try Pair(isBox: isBox)
            try body(pair)
            return pair.failure
        }
        #expect(try failure { $0.machine.received([.text("hello")], now: .zero) } == .unsupported)
        #expect(
            try failure { $0.machine.received([Message(Bytes(repeating: 3, count: 65_537))], now: .zero) } == .tooBig)
        #expect(try failure { $0.machine.received([Message([0, 1, 2])], now: .zero) } == .protocolError)
        #expect(try failure { $0.machine.received([Message([])], now: .zero) } == .protocolError)
        // A control message that is lost, twice, or from the wrong end.
        #expect(
            try failure { pair in
                _ = try pair.seal.seal(.here(nonce: 1))
                try pair.say(.here(nonce: 2))
            } == .protocolError)
        #expect(
            try failure { pair in
                let message = Message(try pair.seal.seal(.here(nonce: 1)))
                pair.machine.received([message, message], now: .zero)
            } == .protocolError)
        #expect(try failure { try $0.say(.enter) } == .protocolError)
        // More than there was credit for: the first message cost some of the box's.
        let room = Int(DoorLimits.defaultWindow) - (isBox ? 5 + 64 : 0)
        let lengths = Array(repeating: 60_000, count: 4) + [room - 4 * 60_064 - 64]
        #expect(try failure { pair in for length in lengths { pair.give(pair.frame(.bulk, length)) } } == nil)
        #expect(
            try failure { pair in
                for length in lengths { pair.give(pair.frame(.bulk, length)) }
                pair.give(pair.frame(.control, 1))
            } == .protocolError)
        // What a later version may say, and what is lost on the way, breaks nothing.
        #expect(try failure { $0.machine.received([Message([77, 1, 2])], now: .zero) } == nil)
        #expect(try failure { $0.machine.received([Message([1, 2], delivery: .unreliable)], now: .zero) } == nil)
        #expect(try failure { $0.give($0.frame(.control, 0)) } == nil)
        if !isBox { #expect(try failure { try $0.say(.entered) } == .protocolError) }
        if isBox { #expect(try failure { $0.give($0.frame(.begin, 5)) } == .protocolError) }
    }

    @Test func `Message 2 and an answer to a check have their time`() throws {
        let silent = try DoorSession(
            .box(BoxHello(window: DoorLimits.defaultWindow, capabilities: .onlyTunnel), roster: []),
            key: StaticPrivateKey(), doorKeys: [StaticPrivateKey().publicKey])
        let machine = Machine(silent)
        machine.value.opened(now: .zero)
        #expect(machine.value.deadline == .zero + .seconds(12))
        machine.value.passed(now: .zero + .seconds(12))
        #expect(machine.value.takeEvents().count == 1)
        #expect(machine.value.deadline == nil)
        let pair = try Pair(isBox: true)
        #expect(pair.machine.deadline == .zero + .seconds(30))
        pair.machine.passed(now: .zero + .seconds(30))
        let asked = pair.machine.outbox.next()
        guard case .sealed(let sealed) = try DoorMessage.decode(try #require(asked.first).payload, .boxToDoor) else {
            Issue.record("no check")
            return
        }
        // Before it came the roster, which was not looked at.
        #expect(throws: ControlSealError.self) { try pair.seal.open(sealed) }
        #expect(pair.machine.deadline == .zero + .seconds(40))
        // R130: other traffic is no answer.
        pair.give(pair.frame(.control, 1))
        #expect(pair.machine.deadline == .zero + .seconds(40))
        pair.machine.passed(now: .zero + .seconds(40))
        #expect(pair.failure == .tooSlow)
    }

    @Test func `Bulk and datagrams wait until they cannot overtake enter, and control does not`() throws {
        let pair = try Pair(isBox: false, stands: false)
        for (delivery, count) in [(Delivery.bulk, 10), (.unreliable, 11), (.control, 12), (.bulk, 13)] {
            pair.machine.send(Bytes(repeating: 2, count: count), delivery, of: pair.address)
        }
        #expect(pair.machine.waitingCost(pair.address, bulk: true) == 10 + 13 + 2 * 64)
        #expect(pair.sent().map(\.payload.count) == [12])
        try pair.say(.entered)
        #expect(pair.sent().map(\.payload.count) == [11, 10, 13])
        #expect(pair.machine.waitingCost(pair.address, bulk: true) == 0)
    }

    @Test(arguments: [false, true])
    func `A frame for a session that is not there is answered with an end, once it is not late`(isBox: Bool) throws {
        let pair = try Pair(isBox: isBox)
        var stray = pair.frame(.control, 5)
        stray.session = .random()
        pair.give(stray)
        #expect(pair.sent() == [.end(device: stray.device, session: stray.session)])
        for kind in [TunnelFrame.Kind.unreliable] {
            stray.kind = kind
            pair.give(stray)
        }
        pair.give(.end(device: stray.device, session: stray.session))
        // R79: the session ends, and what comes for it is late.
        pair.give(pair.frame(.control, 0))
        pair.give(pair.frame(.bulk, 5))
        try pair.say(.credit(device: pair.address.device, session: pair.address.session, total: 1 << 20))
        #expect(pair.sent().isEmpty)
        #expect(pair.failure == nil)
    }

    @Test func `A session that begins again while its end waits is answered by that end`() throws {
        let pair = try Pair(isBox: true)
        pair.machine.abandon(pair.address)
        pair.give(pair.frame(.begin, 5))
        #expect(pair.machine.takeEvents().isEmpty)
        #expect(pair.sent().map(\.isEnd) == [true])
        // Once it has gone, the number is as good as any other.
        pair.give(pair.frame(.begin, 5))
        #expect(!pair.machine.takeEvents().isEmpty)
    }

    @Test func `A door that asks for ends and reads none is not read for ever`() throws {
        let pair = try Pair(isBox: true)
        var isBackedUp = false
        for _ in 0..<2_000 where !isBackedUp {
            let stranger = TunnelFrame(
                .control, device: pair.address.device, session: .random(), payload: Bytes("unknown"))
            pair.give(stranger)
            isBackedUp = pair.machine.isBackedUp
        }
        #expect(isBackedUp)
        while pair.machine.outbox.isReady { _ = pair.machine.outbox.next() }
        isBackedUp = pair.machine.isBackedUp
        #expect(!isBackedUp)
    }

    @Test func `Credit is given back as messages are taken`() throws {
        let pair = try Pair(isBox: false)
        for _ in 0..<3 { pair.give(pair.frame(.bulk, 60_000)) }
        #expect(!pair.machine.outbox.isReady)
        #expect(pair.machine.take(pair.address).count == 3)
        guard
            case .sealed = try DoorMessage.decode(try #require(pair.machine.outbox.next().first).payload, .clientToDoor)
        else {
            Issue.record("no credit")
            return
        }
        for _ in 0..<4 { pair.give(pair.frame(.bulk, 60_000)) }
        #expect(pair.failure == nil)
    }

    @Test(arguments: [false, true])
    func `Whatever arrives is read or ends the link, and nothing traps`(isBox: Bool) throws {
        var random = SeededGenerator.announced()
        var failures = 0
        for _ in 0..<150 {
            let pair = try Pair(isBox: isBox, stands: Bool.random(using: &random))
            for _ in 0..<20 {
                let (value, _) = DoorValue.random(using: &random)
                var bytes = value.encoded() ?? Bytes()
                if Bool.random(using: &random) { bytes = bytes.mutated(using: &random) }
                let delivery = Delivery.allCases.randomElement(using: &random) ?? .control
                pair.machine.received([Message(bytes, delivery: delivery)], now: .zero)
                if Bool.random(using: &random) { _ = pair.machine.take(pair.address) }
                _ = pair.machine.outbox.next()
                pair.machine.passed(now: .zero + .seconds(Int.random(in: 0...20, using: &random)))
            }
            if pair.failure != nil { failures += 1 }
        }
        #expect(failures > 10)
    }

    private final class Machine {
        var value: DoorSession

        init(_ value: consuming DoorSession) { self.value = value }
    }
}
