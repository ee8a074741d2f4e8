internal import TransportKit

/// Decides when the secondary takes over from the primary (R108–R117). No I/O and no clock: `now` is always handed in.
///
/// A session proves the primary by the first thing that arrives on it. Silence counts only where somebody waits for
/// something: for an open, or for an answer to what was sent.
struct FallbackMachine {
    /// Who carries.
    enum Phase: Hashable {
        case primary
        /// The primary ends; nothing is dialled before that is done (R114).
        case leaving(FallbackReason)
        case secondary(FallbackReason)
    }

    /// How long the primary has to carry. It is a state of its own, apart from whether it has ever carried (R113, R178).
    enum Window: Hashable {
        /// Nothing is waited for, or the primary carries.
        case none
        /// Nothing has ever arrived: any end hands over at once (R109), and so does the end of the window (R111).
        case firstAnswer(until: Instant)
        /// It had carried, or was woken: only the end of the window hands over (R112, R113).
        case recovery(until: Instant)
    }

    /// What becomes of the way back, where there is one. It matters only while the secondary is in force.
    enum Probe: Hashable {
        /// There is none.
        case none
        /// The primary is tried then.
        case due(Instant)
        /// A session of the primary is being opened beside the secondary.
        case opening(until: Instant)
        /// It stands; where it still does then, the primary takes over.
        case standing(until: Instant)
    }

    /// What whoever asked for a session does next.
    enum Direction: Hashable {
        case dialPrimary
        case dialSecondary
        /// The primary is still ending.
        case wait
    }

    /// What a failed attempt to open leads to.
    enum Reaction: Hashable {
        /// It is the caller's to know.
        case fail
        /// The primary is dialled again then, unless the secondary takes over before.
        case retry(at: Instant)
        /// The secondary takes over.
        case takeOver
    }

    private struct Session {
        /// Something was sent since the last arrival that counts.
        var isAsked: Bool
        var isAnswered = false
    }

    /// A timer that is so late says that this end did not run, and nothing about the path (R60).
    private static let lateness = Duration.seconds(10)

    /// How long a fallback stays on its primary at least, or away from it.
    private static let leastStay = Duration.seconds(60)

    private let recovery: Duration
    private let switchBack: (any SwitchBackPolicy)?
    private(set) var probe = Probe.none
    private var probeFailures = 0
    private var lastReturn: Instant?
    private(set) var phase = Phase.primary
    private(set) var hasEverCarried = false
    private(set) var window = Window.none
    /// Who waits for a session of the primary.
    private var calls: Set<UInt64> = []
    private var sessions: [UInt64: Session] = [:]
    /// The last end or failure since the primary carried.
    private var lastEnd: Close?
    /// An attempt has failed within this window.
    private var hasFailed = false
    /// The pauses between attempts within a window, which is short.
    private var backoff = Backoff(cap: .seconds(1))

    /// - Parameters:
    ///   - recovery: how long the primary has to carry, at first and again.
    ///   - switchBack: when to go back to it; nil for never (R115).
    init(recovery: Duration, switchBack: (any SwitchBackPolicy)? = nil) {
        self.recovery = recovery
        self.switchBack = switchBack
    }

    /// When ``passed(now:)`` has to be called.
    var deadline: Instant? {
        switch phase {
        case .primary:
            switch window {
            case .firstAnswer(let until), .recovery(let until): until
            case .none: nil
            }
        case .leaving: nil
        case .secondary:
            switch probe {
            case .due(let until), .opening(let until), .standing(let until): until
            case .none: nil
            }
        }
    }

    /// Whether something has arrived on a session of the primary that stands.
    var isCarrying: Bool { sessions.values.contains { $0.isAnswered } }

    // MARK: - What happens

    /// Somebody asks for a session, or goes on asking.
    mutating func opening(_ call: UInt64, now: Instant) -> Direction {
        switch phase {
        case .primary:
            calls.insert(call)
            expectAnswer(now: now)
            return .dialPrimary
        case .leaving: return .wait
        case .secondary: return .dialSecondary
        }
    }

    /// Whoever asked for a session does not want it any more.
    mutating func gaveUp(_ call: UInt64, now: Instant) {
        calls.remove(call)
        settle(now: now)
    }

    /// The primary has opened a session; a handshake is no proof (R110).
    ///
    /// - Parameters:
    ///   - session: the call that it was opened for; its number from now on.
    ///   - isAsked: whether something was sent with it.
    /// - Returns: whether the session is wanted.
    mutating func opened(_ session: UInt64, isAsked: Bool, now: Instant) -> Bool {
        guard case .primary = phase, calls.remove(session) != nil else { return false }
        sessions[session] = Session(isAsked: isAsked)
        return true
    }

    /// The primary has not opened a session.
    ///
    /// - Parameter fraction: a random number from 0 up to, but not including, 1.
    mutating func openFailed(_ call: UInt64, _ close: Close, now: Instant, fraction: Double) -> Reaction {
        guard case .primary = phase else { return .takeOver }
        let evidence = FallbackEvidence(close)
        if let reason = reasonAtOnce(evidence, close) { return takeOver(reason) }
        guard evidence != .nothing, !isCarrying, case .recovery(let until) = window else {
            calls.remove(call)
            settle(now: now)
            return .fail
        }
        // R178: in the window nothing but its end hands over, a refusal included.
        lastEnd = close
        hasFailed = true
        // R127: where the service has gone everybody comes back, and not at once.
        let isShared = close.origin == .remote && [.goingAway, .restarting, .tryAgainLater].contains(close.code)
        let pause = backoff.failed(fraction: fraction)
        return .retry(at: now + (isShared ? (until - now) * fraction : pause))
    }

    /// Something was sent on a session.
    mutating func asked(_ session: UInt64, now: Instant) {
        guard sessions[session]?.isAnswered == false else { return }
        sessions[session]?.isAsked = true
        expectAnswer(now: now)
    }

    /// Something has arrived on a session: the primary carries.
    mutating func arrived(_ session: UInt64) {
        guard case .primary = phase, sessions[session] != nil else { return }
        sessions[session] = Session(isAsked: false, isAnswered: true)
        hasEverCarried = true
        window = .none
        lastEnd = nil
        hasFailed = false
        backoff.reset()
    }

    /// A session has ended.
    ///
    /// - Parameter close: how; nil where its owner has ended it.
    mutating func ended(_ session: UInt64, _ close: Close?, now: Instant) {
        guard sessions.removeValue(forKey: session) != nil, case .primary = phase else { return }
        guard let close else { return settle(now: now) }
        let evidence = FallbackEvidence(close)
        // A second session may have taken the place of the first; both are this end's.
        if evidence == .nothing || (evidence == .displaced && !(calls.isEmpty && sessions.isEmpty)) {
            return settle(now: now)
        }
        if let reason = reasonAtOnce(evidence, close) {
            _ = takeOver(reason)
            return
        }
        guard !isCarrying else { return }
        lastEnd = close
        switch window {
        case .recovery: hasFailed = true
        case .none, .firstAnswer: beginRecovery(now: now)
        }
    }

    /// The network is back or has changed: nothing that stood is trusted (R112).
    mutating func woken(now: Instant) {
        switch phase {
        case .primary: break
        case .leaving: return
        case .secondary:
            // What was being tried, was on the network that was.
            if switchBack != nil { probe = .due(max(now, earliestReturn)) }
            return
        }
        guard !(calls.isEmpty && sessions.isEmpty) || hasEverCarried else { return }
        for session in sessions.keys where sessions[session]?.isAnswered == true {
            sessions[session] = Session(isAsked: false)
        }
        backoff.reset()
        beginRecovery(now: now)
    }

    /// Time has passed.
    mutating func passed(now: Instant) {
        guard let deadline, now >= deadline else { return }
        guard case .primary = phase else { return probePassed(now: now, isLate: now - deadline >= Self.lateness) }
        guard isOwed else {
            // Nobody waits for anything: the next who does starts anew.
            window = .none
            hasFailed = false
            return
        }
        guard now - deadline < Self.lateness else {
            switch window {
            case .firstAnswer: window = .firstAnswer(until: now + recovery)
            case .recovery: window = .recovery(until: now + recovery)
            case .none: break
            }
            return
        }
        _ = takeOver(hasEverCarried ? .lost(recovery, lastEnd) : .silent(recovery))
    }

    /// The primary has ended.
    mutating func left(now: Instant) {
        guard case .leaving(let reason) = phase else { return }
        phase = .secondary(reason)
        probeFailures = 0
        scheduleProbe(now: now)
    }

    // MARK: - The way back

    /// A session of the primary has opened beside the secondary: a round trip to the peer.
    ///
    /// - Returns: whether it is wanted.
    mutating func probeOpened(now: Instant) -> Bool {
        guard case .secondary = phase, case .opening = probe, let switchBack else { return false }
        probe = .standing(until: now + switchBack.dwell)
        return true
    }

    /// It has not opened, or has ended.
    mutating func probeFailed(now: Instant) {
        guard case .secondary = phase else { return }
        switch probe {
        case .none, .due: break
        case .opening, .standing:
            probeFailures += 1
            scheduleProbe(now: now)
        }
    }

    private mutating func probePassed(now: Instant, isLate: Bool) {
        switch probe {
        case .none: break
        case .due: probe = .opening(until: now + recovery)
        case .opening: probeFailed(now: now)
        case .standing:
            if isLate, let switchBack {
                probe = .standing(until: now + switchBack.dwell)
            } else {
                phase = .primary
                probe = .none
                hasEverCarried = false
                lastEnd = nil
                hasFailed = false
                lastReturn = now
            }
        }
    }

    private mutating func scheduleProbe(now: Instant) {
        guard let switchBack else { return }
        probe = .due(max(now + switchBack.pause(failures: probeFailures), earliestReturn))
    }

    private var earliestReturn: Instant { lastReturn.map { $0 + Self.leastStay } ?? .zero }

    // MARK: - What follows

    /// Whether somebody waits for something that the primary has not given.
    private var isOwed: Bool {
        if !calls.isEmpty || sessions.values.contains(where: { $0.isAsked && !$0.isAnswered }) { return true }
        return sessions.isEmpty && hasFailed
    }

    /// The reason to hand over without waiting, if there is one.
    private func reasonAtOnce(_ evidence: FallbackEvidence, _ close: Close) -> FallbackReason? {
        // R117: what may not be used gets no time to recover either.
        if evidence == .notUsable { return .notUsable(close) }
        if hasEverCarried { return nil }
        if case .recovery = window { return nil }
        switch evidence {
        case .nothing: return nil
        case .notUsable: return .notUsable(close)
        case .refused: return .refused(close)
        case .unreachable: return .unreachable(close)
        case .displaced, .ended: return .ended(close)
        }
    }

    private mutating func takeOver(_ reason: FallbackReason) -> Reaction {
        phase = .leaving(reason)
        window = .none
        calls = []
        sessions = [:]
        return .takeOver
    }

    private mutating func expectAnswer(now: Instant) {
        guard !isCarrying else { return }
        switch window {
        case .firstAnswer, .recovery: break
        case .none:
            if hasEverCarried { beginRecovery(now: now) } else { window = .firstAnswer(until: now + recovery) }
        }
    }

    private mutating func beginRecovery(now: Instant) {
        hasFailed = false
        window = .recovery(until: now + recovery)
    }

    /// Somebody has gone: whoever still waits is owed an answer, and one that nobody waits for any more is not late.
    private mutating func settle(now: Instant) {
        if !calls.isEmpty || sessions.values.contains(where: { $0.isAsked && !$0.isAnswered }) {
            expectAnswer(now: now)
        } else if case .firstAnswer = window, sessions.isEmpty {
            window = .none
        }
    }
}
