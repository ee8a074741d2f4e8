import TransportKit

@testable import FallbackCarrier

/// What the requirements say of a tunnel, as a record of plain facts: what has happened, and when, in milliseconds.
struct FallbackModel {
    static let recovery = 5000

    struct Session {
        var isAsked: Bool
        var isAnswered = false
    }

    var calls: Set<UInt64> = []
    var sessions: [UInt64: Session] = [:]
    /// Something has arrived once.
    var hasEverCarried = false
    /// Since when it has to carry again; nil where it need not.
    var recoveringSince: Int?
    /// Since when somebody waits for a first sign; nil where nobody does.
    var waitingSince: Int?
    /// An attempt has failed, or a session ended, since it has to carry again.
    var hasFailed = false
    var hasMoved = false

    var isCarrying: Bool { sessions.values.contains { $0.isAnswered } }

    private var isWaitedFor: Bool {
        !calls.isEmpty || sessions.values.contains { $0.isAsked && !$0.isAnswered }
    }

    /// When time alone decides next.
    var deadline: Int? {
        if hasMoved { return nil }
        return (recoveringSince ?? waitingSince).map { $0 + Self.recovery }
    }

    mutating func open(_ id: UInt64, _ now: Int) {
        guard !hasMoved else { return }
        calls.insert(id)
        lookWhoWaits(now)
    }

    mutating func giveUp(_ id: UInt64, _ now: Int) {
        calls.remove(id)
        lookWhoWaits(now)
    }

    mutating func opened(_ id: UInt64, isAsked: Bool) {
        guard calls.remove(id) != nil else { return }
        sessions[id] = Session(isAsked: isAsked)
    }

    /// - Returns: whether the caller is told.
    mutating func failed(_ id: UInt64, _ evidence: FallbackEvidence, _ now: Int) -> Bool {
        guard !hasMoved else { return false }
        if mayMoveAtOnce(evidence) {
            move()
            return false
        }
        if evidence == .nothing || isCarrying || recoveringSince == nil {
            calls.remove(id)
            lookWhoWaits(now)
            return true
        }
        hasFailed = true
        return false
    }

    mutating func ask(_ id: UInt64, _ now: Int) {
        guard !hasMoved, sessions[id]?.isAnswered == false else { return }
        sessions[id]?.isAsked = true
        lookWhoWaits(now)
    }

    mutating func arrive(_ id: UInt64) {
        guard !hasMoved, sessions[id] != nil else { return }
        sessions[id] = Session(isAsked: false, isAnswered: true)
        hasEverCarried = true
        (recoveringSince, waitingSince, hasFailed) = (nil, nil, false)
    }

    mutating func end(_ id: UInt64, _ evidence: FallbackEvidence?, _ now: Int) {
        guard sessions.removeValue(forKey: id) != nil, !hasMoved else { return }
        let isOurOwnDoing = evidence == .displaced && !(calls.isEmpty && sessions.isEmpty)
        guard let evidence, evidence != .nothing, !isOurOwnDoing else { return lookWhoWaits(now) }
        if mayMoveAtOnce(evidence) { return move() }
        guard !isCarrying else { return }
        if recoveringSince == nil {
            (recoveringSince, hasFailed) = (now, false)
        } else {
            hasFailed = true
        }
    }

    mutating func wake(_ now: Int) {
        guard !hasMoved, hasEverCarried || !calls.isEmpty || !sessions.isEmpty else { return }
        for (id, session) in sessions where session.isAnswered { sessions[id] = Session(isAsked: false) }
        (recoveringSince, waitingSince, hasFailed) = (now, nil, false)
    }

    mutating func passTime(_ now: Int) {
        guard let deadline, now >= deadline else { return }
        let isOverdue = isWaitedFor || (sessions.isEmpty && hasFailed)
        if isOverdue, now - deadline < 10_000 { return move() }
        // Nobody waits, or this end did not run: it starts anew, with who waits then.
        let wasRecovering = recoveringSince != nil
        if isOverdue {
            if wasRecovering { recoveringSince = now } else { waitingSince = now }
        } else {
            (recoveringSince, waitingSince, hasFailed) = (nil, nil, false)
        }
    }

    private func mayMoveAtOnce(_ evidence: FallbackEvidence) -> Bool {
        if evidence == .notUsable { return true }
        return evidence != .nothing && !hasEverCarried && recoveringSince == nil
    }

    private mutating func move() {
        self = FallbackModel()
        hasMoved = true
    }

    /// Somebody has begun or ceased to wait.
    private mutating func lookWhoWaits(_ now: Int) {
        if isWaitedFor, !isCarrying {
            guard recoveringSince == nil, waitingSince == nil else { return }
            if hasEverCarried { (recoveringSince, hasFailed) = (now, false) } else { waitingSince = now }
        } else if !isWaitedFor, sessions.isEmpty {
            waitingSince = nil
        }
    }
}
