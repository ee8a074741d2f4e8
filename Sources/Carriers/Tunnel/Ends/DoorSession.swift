internal import NoiseCarrier
internal import TransportKit

/// One end's conversation with a door over one link: the handshake, what both say of the link, and the sessions in it
/// (`docs/protocol.md` §9).
///
/// No I/O and no clock: what arrives and the instant are handed in; what is to be sent waits in the outbox, and what the
/// driver has to know in ``takeEvents()``. A client and a box differ in what they come with and in who begins sessions.
struct DoorSession: ~Copyable {
    /// What the driver has to know.
    enum Event {
        /// The door has answered: what the box can take, nil where none is linked. A box hears of no box.
        case greeted(BoxCapabilities?)
        /// The client is in, or the home is served.
        case stands
        /// The box of the home has linked, and what it can take, or has left.
        case box(BoxCapabilities?)
        /// A session begins at this box; its first message waits.
        case begun(TunnelAddress)
        /// Messages of a session wait.
        case readable(TunnelAddress)
        /// The session may take more.
        case writable(TunnelAddress)
        /// The other end, or the door, has ended a session. What had arrived before is handed out, and the session is gone.
        case ended(TunnelAddress, rest: [Message], carried: Duration)
        /// The link is to be closed with this.
        case failed(Close)
    }

    private enum Phase {
        /// Message 1 has not been handed to the wire.
        case unsent
        /// Message 2 is out.
        case greeting(until: Instant)
        /// Entered or linked is out.
        case entering
        case standing
        case over
    }

    /// How long message 2 is waited for.
    static let greetingPatience = Duration.seconds(12)
    /// After so much silence the door is asked whether it routes by this link, and has this long to say so (B40).
    static let silence = Duration.seconds(30)
    static let checkPatience = Duration.seconds(10)

    let end: DoorEnd
    private let key: StaticPrivateKey
    private let doorKeys: [StaticPublicKey]
    private var keyIndex: Int
    private var keysTried = 1
    private var handshake: InitiatorHandshake
    private var phase = Phase.unsent
    var seal: ControlSeal?
    /// The credit with which sessions begin toward the door.
    private var doorWindow: UInt32 = 0
    var flows: [TunnelAddress: TunnelFlow] = [:]
    private var over = EndedSessions<TunnelAddress>()
    var outbox = LinkOutbox<TunnelAddress>()
    /// Whether so much waits of what this end has to say itself that nothing should be read that asks for more.
    var isBackedUp: Bool { outbox.ownBytes > 65_536 || outbox.count > flows.count + 256 }
    private var events: [Event] = []
    private var lastHeard = Instant.zero
    private var check: (nonce: UInt64, until: Instant)?
    /// How many messages were dropped: datagrams that cannot be read, and unreliable ones that nobody took in time.
    var dropped = 0

    /// Begins a handshake.
    ///
    /// - Parameters:
    ///   - end: what this end is.
    ///   - key: who it is.
    ///   - doorKeys: one of them is the door's.
    ///   - preferred: which of them is tried first.
    init(_ end: DoorEnd, key: StaticPrivateKey, doorKeys: [StaticPublicKey], preferred: Int = 0) throws(NoiseError) {
        precondition(!doorKeys.isEmpty, "a door has a key")
        self.end = end
        self.key = key
        self.doorKeys = doorKeys
        keyIndex = preferred % doorKeys.count
        handshake = try InitiatorHandshake(
            key: key, peer: doorKeys[keyIndex], prologue: end.sends.prologue, payload: end.payload)
        if case .client(let hello) = end, let tun = hello.tun {
            flows[TunnelAddress(of: tun)] = TunnelFlow(window: end.window)
        }
    }

    // MARK: - The handshake

    /// The first message of the link.
    var message1: Bytes { DoorMessage.handshake(handshake.message1).encoded() }

    /// Which of the door's keys is tried, or was the right one.
    var keyInUse: Int { keyIndex }

    /// Whether entered or linked has come.
    var stands: Bool {
        switch phase {
        case .standing: true
        case .unsent, .greeting, .entering, .over: false
        }
    }

    /// Whether the door has answered.
    var isGreeted: Bool {
        switch phase {
        case .entering, .standing: true
        case .unsent, .greeting, .over: false
        }
    }

    /// The link is open and message 1 on its way.
    mutating func opened(now: Instant) {
        guard case .unsent = phase else { return }
        phase = .greeting(until: now + Self.greetingPatience)
        lastHeard = now
    }

    /// The door has refused the link.
    ///
    /// - Returns: whether there is another key to try, with the same first message of a session (R90): the link is then to
    ///   be dialled again, with the new ``message1``.
    mutating func tryNextKey() throws(NoiseError) -> Bool {
        switch phase {
        case .unsent, .greeting: break
        case .entering, .standing, .over: return false
        }
        guard keysTried < doorKeys.count else { return false }
        keysTried += 1
        keyIndex = (keyIndex + 1) % doorKeys.count
        handshake = try InitiatorHandshake(
            key: key, peer: doorKeys[keyIndex], prologue: end.sends.prologue, payload: end.payload)
        phase = .unsent
        return true
    }

    private mutating func greet(_ message2: Bytes) throws(DoorSessionFault) {
        let session: NoiseSession
        do throws(NoiseError) {
            session = try handshake.finish(reading: message2)
        } catch {
            throw DoorSessionFault("the door's answer to the handshake was not read: \(error)")
        }
        let box: BoxCapabilities?
        do throws(DoorWireError) {
            switch end {
            case .client:
                let welcome = try ClientWelcome(session.payload)
                (doorWindow, box) = (welcome.window, welcome.box)
            case .box:
                (doorWindow, box) = (try BoxWelcome(session.payload).window, nil)
            }
        } catch {
            throw DoorSessionFault("\(error)")
        }
        seal = ControlSeal(session, reads: end.reads)
        phase = .entering
        switch end {
        case .client(let hello):
            say(.enter)
            if let tun = hello.tun {
                // It went inside of message 1; the session may have ended since.
                let address = TunnelAddress(of: tun)
                var lane = SendLane(session: tun.session, window: doorWindow)
                lane.sent(tun)
                if flows[address] != nil { outbox.open(address, lane) } else { outbox.say(endOf(address)) }
            }
            for address in flows.keys where !outbox.contains(address) { openLane(address) }
            releaseEarly()
        case .box(_, let roster, let expects):
            for expectation in expects { say(expectation) }
            for part in Self.parts(of: roster) { say(part) }
        }
        events.append(.greeted(box))
    }

    /// A roster in as many messages as it takes.
    private static func parts(of roster: [StaticPublicKey]) -> [DoorControl] {
        let size = DoorLimits.keys
        // Sorted as a whole, so that no key is in two parts.
        let keys = Array(Set(roster))
        guard keys.count > size else { return [.roster(DeviceKeys(keys), more: false)] }
        return stride(from: 0, to: keys.count, by: size).map { start in
            let next = min(start + size, keys.count)
            return .roster(DeviceKeys(keys[start..<next]), more: next < keys.count)
        }
    }

    // MARK: - Input

    /// Messages have arrived.
    mutating func received(_ messages: [Message], now: Instant) {
        lastHeard = now
        for message in messages {
            if case .over = phase { return }
            do throws(DoorSessionFault) {
                try received(message, now: now)
            } catch {
                fail(error.close)
            }
        }
    }

    private mutating func received(_ message: Message, now: Instant) throws(DoorSessionFault) {
        let isDatagram = message.delivery == .unreliable
        guard message.format == .binary else {
            throw DoorSessionFault("the door sent a text message", .unsupported)
        }
        let read: DoorMessage
        do throws(DoorWireError) {
            read = try DoorMessage.decode(message.payload, end.reads, isDatagram: isDatagram)
        } catch {
            // What came as a datagram is one that is lost.
            guard !isDatagram else { return dropped += 1 }
            throw DoorSessionFault("\(error)", error.fault == .tooLong ? .tooBig : .protocolError)
        }
        switch (read, phase) {
        case (.handshake(let message2), .greeting):
            try greet(message2)
        case (.handshake, .unsent), (.handshake, .entering), (.handshake, .standing), (.handshake, .over):
            throw DoorSessionFault("the door sent a second handshake message")
        case (.sealed(let sealed), .entering), (.sealed(let sealed), .standing):
            try opened(sealed, now: now)
        case (.frame(let frame), .entering), (.frame(let frame), .standing):
            try arrived(frame, now: now)
        case (.frame, .unsent), (.frame, .greeting), (.frame, .over), (.sealed, .unsent), (.sealed, .greeting),
            (.sealed, .over):
            guard !isDatagram else { return dropped += 1 }
            throw DoorSessionFault("the door spoke before its answer to the handshake")
        case (.unknown, _):
            break
        }
    }

    private mutating func opened(_ sealed: Bytes, now: Instant) throws(DoorSessionFault) {
        let control: DoorControl
        do throws(ControlSealError) {
            guard let opened = try seal?.open(sealed) else { return }
            control = opened
        } catch {
            throw DoorSessionFault("\(error)")
        }
        switch control {
        case .entered, .linked:
            let isFirst = !stands
            guard isFirst || end.sends == .boxToDoor else { throw DoorSessionFault("the door let the client in twice") }
            phase = .standing
            if isFirst { releaseEarly() }
            events.append(.stands)
        case .box(let capabilities):
            events.append(.box(capabilities))
        case .credit(let device, let session, let total):
            let address = TunnelAddress(device: device, session: session)
            outbox.credit(total, of: address)
            if flows[address] != nil { events.append(.writable(address)) }
        case .here(let nonce):
            // An answer that is late says the same.
            if check?.nonce == nonce { check = nil }
        case .unknown:
            break
        case .enter, .roster, .admit, .revoke, .expect, .forget, .check:
            throw DoorSessionFault("the door said what only its clients and boxes say")
        }
    }

    private mutating func arrived(_ frame: TunnelFrame, now: Instant) throws(DoorSessionFault) {
        let address = TunnelAddress(of: frame)
        guard flows[address] != nil else { return try arrived(frame, ofNone: address, now: now) }
        guard frame.kind != .begin else { throw DoorSessionFault("the door began a session twice") }
        guard !frame.isEnd else { return ended(address, now: now) }
        switch flows[address]?.arrived(frame, now: now) {
        case true?: events.append(.readable(address))
        case false?: throw DoorSessionFault("the door sent more of a session than it was given credit for")
        case nil: dropped += 1
        }
    }

    /// A frame of a session that is not there.
    private mutating func arrived(
        _ frame: TunnelFrame, ofNone address: TunnelAddress, now: Instant
    ) throws(DoorSessionFault) {
        switch frame.kind {
        case .begin:
            // The end of its last session waits here still, and is the answer to this one too.
            guard !outbox.contains(address) else { return }
            var flow = TunnelFlow(window: end.window)
            guard flow.arrived(frame, now: now) == true else {
                throw DoorSessionFault("the door began a session with more than it was given credit for")
            }
            flows[address] = flow
            openLane(address)
            events.append(.begun(address))
        case .control, .bulk:
            // R79: what is late for an older session is dropped; of any other the door has a wrong idea.
            if !frame.isEnd, !over.contains(address) { outbox.say(endOf(address)) }
        case .unreliable:
            dropped += 1
        }
    }

    private mutating func ended(_ address: TunnelAddress, now: Instant) {
        guard let flow = flows[address] else { return }
        forget(address)
        events.append(.ended(address, rest: flow.arrived, carried: flow.carried(now: now)))
    }

    // MARK: - Time

    /// When ``passed(now:)`` has something to do.
    var deadline: Instant? {
        switch phase {
        case .greeting(let until): until
        case .entering, .standing: check?.until ?? (mustAsk ? lastHeard + Self.silence : nil)
        case .unsent, .over: nil
        }
    }

    /// A box wants to be reached at any time; a client only wants to know while a session is open.
    private var mustAsk: Bool {
        switch end {
        case .client: !flows.isEmpty
        case .box: true
        }
    }

    /// Time has passed.
    mutating func passed(now: Instant) {
        switch phase {
        case .greeting(let until):
            guard now >= until else { return }
            let words = Self.greetingPatience.inWords
            fail(Close(.tooSlow, reason: "the door did not answer the handshake within \(words)", origin: .local))
        case .entering, .standing:
            if let check {
                guard now >= check.until else { return }
                let words = Self.checkPatience.inWords
                fail(Close(.tooSlow, reason: "the door did not say within \(words) that it is there", origin: .local))
            } else if mustAsk, now >= lastHeard + Self.silence {
                let nonce = UInt64.random(in: 0 ... .max)
                check = (nonce, now + Self.checkPatience)
                say(.check(nonce: nonce))
            }
        case .unsent, .over:
            break
        }
    }

    // MARK: - Output

    /// Says something of the link itself.
    mutating func say(_ control: DoorControl) {
        // Keys that seal 2^64 messages outlast the link.
        guard let message = try? seal?.seal(control) else { return }
        outbox.say(message)
    }

    mutating func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    /// The link has ended, or must.
    ///
    /// - Returns: what was left of each session, and how long it had carried.
    mutating func finish(now: Instant) -> [(address: TunnelAddress, rest: [Message], carried: Duration)] {
        phase = .over
        defer { flows = [:] }
        return flows.map { ($0.key, $0.value.arrived, $0.value.carried(now: now)) }
    }

    private mutating func fail(_ close: Close) {
        phase = .over
        events.append(.failed(close))
    }

    /// Forgets a session; what is late for it is known as such.
    mutating func forget(_ address: TunnelAddress) {
        outbox.remove(address)
        forgetFlow(address)
    }

    mutating func forgetFlow(_ address: TunnelAddress) {
        flows[address] = nil
        over.insert(address)
    }

    mutating func openLane(_ address: TunnelAddress) {
        outbox.open(address, SendLane(device: address.device, session: address.session, window: doorWindow))
    }

    private func endOf(_ address: TunnelAddress) -> Bytes {
        TunnelFrame.end(device: address.device, session: address.session).encoded()
    }
}
