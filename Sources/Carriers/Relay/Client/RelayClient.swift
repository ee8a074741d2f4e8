internal import TransportKit

/// A client of the relay: when it dials, when its session may begin, and when it is over (R101–R106).
///
/// No socket and no clock: what has happened, the instant and the random numbers are handed in; what to do comes out.
struct RelayClient: Sendable {
    enum Action: Sendable, Hashable {
        /// Dial the room of that epoch.
        case dial(epoch: Int64)
        /// Let go of the dial or the socket.
        case hangUp
        /// The peer is in the room: a session may begin.
        case ready
        /// The session, if there is one, is over.
        case end(Close)
        /// Whoever waits for a session is told that there is none.
        case fail(Close)
    }

    private enum State: Sendable {
        case idle
        case waiting(until: Instant, after: Close)
        case dialing(since: Instant)
        case joined(since: Instant, isPeerHere: Bool)
    }

    private static let woken = Close(
        .pathLost, reason: "the network has changed, and the relay is dialled afresh", origin: .path,
        cause: TransportError(.pathReset, "the network has changed, and the relay is dialled afresh"))
    private static let peerLeft = Close(.nobodyThere, reason: "the peer has left the room", origin: .remote)

    private let youngDial: Duration
    private var plan: JoinPlan
    private var state = State.idle
    /// Whether somebody waits for a session.
    private var isWanted = false

    init(_ settings: RelaySettings) {
        plan = JoinPlan(.app, settings: settings)
        youngDial = settings.youngDial
    }

    /// How many attempts have failed since a frame was delivered.
    var failures: Int { plan.failures }

    /// Until when nothing is dialled, and why.
    var pause: (until: Instant, after: Close)? {
        switch state {
        case .waiting(let until, let close): (until, close)
        case .idle, .dialing, .joined: nil
        }
    }

    /// When ``passed(now:wall:)`` has something to do.
    var deadline: Instant? { pause?.until }

    // MARK: - What somebody wants

    /// Somebody waits for a session.
    mutating func wanted(now: Instant, wall: WallTime) -> [Action] {
        isWanted = true
        switch state {
        case .idle: return [dial(now, wall)]
        case .waiting: return passed(now: now, wall: wall)
        case .dialing, .joined(_, isPeerHere: false): return []
        case .joined(_, isPeerHere: true):
            isWanted = false
            return [.ready]
        }
    }

    /// Nobody waits any more, and there is no session.
    mutating func unwanted() -> [Action] {
        isWanted = false
        switch state {
        case .idle, .waiting: return []
        case .dialing, .joined:
            state = .idle
            return [.hangUp]
        }
    }

    /// The network is back or has changed: what looks open may be dead (R106).
    mutating func woken(now: Instant, wall: WallTime) -> [Action] {
        plan.woken()
        switch state {
        case .idle:
            return []
        case .waiting:
            guard isWanted else {
                state = .idle
                return []
            }
            return [dial(now, wall)]
        case .dialing(let since):
            return now - since < youngDial ? [] : [.hangUp, dial(now, wall)]
        case .joined(let since, _):
            return now - since < youngDial ? [] : [.hangUp, .end(Self.woken), dial(now, wall)]
        }
    }

    // MARK: - What has happened

    /// The dial has opened a socket. That says nothing about the peer (R101).
    mutating func opened() {
        switch state {
        case .dialing(let since): state = .joined(since: since, isPeerHere: false)
        case .idle, .waiting, .joined: break
        }
    }

    /// The relay has said something; unknown words are ignored.
    mutating func heard(_ text: String) -> [Action] {
        guard let word = RelayWire.Word(rawValue: text) else { return [] }
        switch state {
        case .joined(let since, let wasHere):
            plan.joined()
            switch word {
            case .ready:
                state = .joined(since: since, isPeerHere: true)
                guard isWanted else { return [] }
                isWanted = false
                return [.ready]
            case .gone:
                // The socket stays: an hour of the peer's absence costs one connection.
                state = .joined(since: since, isPeerHere: false)
                return wasHere ? [.end(Self.peerLeft)] : []
            }
        case .idle, .waiting, .dialing:
            return []
        }
    }

    /// A frame has arrived on the session.
    mutating func delivered() {
        plan.delivered()
    }

    /// The dial has failed, or the socket has ended.
    mutating func ended(_ close: Close, now: Instant, wall: WallTime, random: () -> Double) -> [Action] {
        switch state {
        case .idle, .waiting:
            return []
        case .dialing, .joined:
            let wait = plan.ended(close, wall: wall, random: random)
            state = .waiting(until: now + wait, after: close)
            // A wrong epoch and its turn are corrected here; nobody need hear of them.
            let isOwnAffair = close.origin == .remote && (close.code == .epochTurned || wait == .zero)
            return [.end(close)] + (isOwnAffair ? passed(now: now, wall: wall) : told(close))
        }
    }

    private mutating func told(_ close: Close) -> [Action] {
        isWanted = false
        return [.fail(close)]
    }

    /// Time has passed.
    mutating func passed(now: Instant, wall: WallTime) -> [Action] {
        switch state {
        case .waiting(let until, _):
            guard now >= until else { return [] }
            guard isWanted else {
                state = .idle
                return []
            }
            return [dial(now, wall)]
        case .idle, .dialing, .joined:
            return []
        }
    }

    private mutating func dial(_ now: Instant, _ wall: WallTime) -> Action {
        state = .dialing(since: now)
        return .dial(epoch: plan.epoch(at: wall))
    }
}
