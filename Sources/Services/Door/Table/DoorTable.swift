internal import NoiseCarrier
internal import TransportKit
internal import TunnelCarrier

/// What a door knows: links, homes, and the sessions between them (`docs/protocol.md` §9). No socket and no clock: messages and
/// `now` are handed in; what is to be done comes out as ``takeEffects()``, and what a link sends as ``next(_:now:)``.
///
/// A link that has ended leaves nothing behind, and what is cleaned up for it is its own: each place is compared with the link
/// itself, never with the name of a device or home.
struct DoorTable: ~Copyable {
    static let handshakeLimit = Duration.seconds(10)
    static let waitingLimit = Duration.seconds(60)
    static let answerLimit = Duration.seconds(15)
    /// How much of what the door says itself may wait on a link before its messages are left unread.
    static let backlog = 65_536
    /// How much may wait before the link is closed: others cause it too.
    static let backlogLimit = 1_048_576

    /// How many sessions a device may have begun with message 1 on links that have not entered.
    static let arrivalSessions = 4

    enum Party {
        case client(ClientLink)
        case box(BoxLink)

        var link: DoorLink {
            switch self {
            case .client(let link): link
            case .box(let link): link
            }
        }
    }

    let keys: [StaticPrivateKey]
    let options: DoorOptions
    let directory: any HomeDirectory
    let window: UInt32
    var links: [UInt64: Party] = [:]
    var homes: [HomeID: DoorHome] = [:]
    var sessions: [UInt64: DoorSession] = [:]
    /// Sessions with a deadline.
    var timed: [UInt64: DoorSession] = [:]
    var limits: AddressLimits
    /// How many links have not proved who they are, and how many clients wait for a box.
    var unproved = 0
    var waiting = 0
    var reserved = 0
    var counts = DoorCounts()
    private var nextLink: UInt64 = 0
    private var nextSession: UInt64 = 0
    private var effects: [DoorEffect] = []
    /// No deadline is earlier; nil where there is none.
    var earliest: Instant?

    /// Makes an empty table.
    ///
    /// - Parameter keys: the door's one static key, or its two while they change; tried in turn.
    init(keys: [StaticPrivateKey], options: DoorOptions, directory: any HomeDirectory) {
        precondition((1...2).contains(keys.count), "a door has one key, or two while they change")
        self.keys = keys
        self.options = options
        self.directory = directory
        window = UInt32(clamping: options.window)
        limits = AddressLimits(
            links: options.linksPerAddress, handshakesPerSecond: options.handshakesPerSecond)
    }

    /// What a session may hold of the budget: a window and the unreliable frames that may wait, in each direction.
    var reservation: Int { 2 * (Int(window) + SendLane.unreliableBytes) }

    // MARK: - For the driver

    /// What is to be done since it was last asked, in order.
    mutating func takeEffects() -> [DoorEffect] {
        defer { effects = [] }
        return effects
    }

    /// What was passed on since it was last asked.
    mutating func takeCounts() -> [(String, Int)] {
        guard counts != DoorCounts() else { return [] }
        defer { counts = DoorCounts() }
        return counts.named
    }

    /// A link has opened.
    ///
    /// - Returns: its number, or nil where there are too many: then it is closed with 4429.
    mutating func opened(_ leg: DoorLeg, address: AddressKey?, now: Instant) -> UInt64? {
        guard links.count < options.links, unproved < options.handshakes, limits.open(address) else {
            perform(.count("door.links.tooMany", 1))
            return nil
        }
        nextLink += 1
        unproved += 1
        let deadline = now + Self.handshakeLimit
        switch leg {
        case .app: links[nextLink] = .client(ClientLink(id: nextLink, address: address, deadline: deadline))
        case .box: links[nextLink] = .box(BoxLink(id: nextLink, address: address, deadline: deadline))
        }
        perform(.gauge(leg.gauge, 1))
        expect(deadline)
        return nextLink
    }

    /// The socket of a link has ended.
    mutating func ended(_ id: UInt64, now: Instant) {
        guard let party = links[id] else { return }
        leave(party, now: now)
    }

    /// Whether the other end leaves unread what the door says: then nothing more of it should be read.
    func isBackedUp(_ id: UInt64) -> Bool { (links[id]?.link.outbox.ownBytes ?? 0) > Self.backlog }

    /// Takes what a link sends next; empty where nothing waits that may go. What was taken before has left by now.
    mutating func next(_ id: UInt64, now: Instant) -> [Message] {
        guard let party = links[id] else { return [] }
        giveBack(party.link.outbox.takeTaken(), of: party, now: now)
        let batch = party.link.outbox.next()
        if !party.link.endings.isEmpty { settleEndings(of: party.link) }
        if batch.isEmpty { party.link.isAwake = false }
        return batch
    }

    // MARK: - Inside

    mutating func perform(_ effect: DoorEffect) {
        effects.append(effect)
    }

    /// Tells the driver of a link that has something to send, once.
    mutating func wake(_ link: DoorLink) {
        guard !link.isAwake, link.outbox.isReady else { return }
        link.isAwake = true
        effects.append(.wake(link.id))
    }

    /// Something is due then.
    mutating func expect(_ deadline: Instant) {
        earliest = min(earliest ?? deadline, deadline)
    }

    mutating func makeSerial() -> UInt64 {
        nextSession += 1
        return nextSession
    }

    /// The home of that name, made where there is none.
    mutating func home(_ id: HomeID) -> DoorHome {
        if let home = homes[id] { return home }
        let home = DoorHome(id: id)
        homes[id] = home
        return home
    }

    mutating func say(_ control: DoorControl, to link: DoorLink, now: Instant) {
        guard link.phase != .closed else { return }
        // Only the end of 2^64 numbers could refuse it.
        guard let sealed = try? link.seal?.seal(control) else { return }
        say(sealed, to: link, now: now)
    }

    mutating func say(_ message: Bytes, to link: DoorLink, now: Instant) {
        guard link.phase != .closed else { return }
        link.outbox.say(message)
        if link.outbox.ownBytes > Self.backlogLimit {
            // Whoever calls is in the middle of something, so the link is closed with the next tick.
            link.isOverrun = true
            link.deadline = now
            expect(now)
        }
        wake(link)
    }
}

extension DoorLeg {
    /// The gauge that counts the links of this leg.
    var gauge: String {
        switch self {
        case .app: "door.links.app"
        case .box: "door.links.box"
        }
    }
}
