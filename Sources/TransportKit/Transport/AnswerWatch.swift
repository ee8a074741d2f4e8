/// Decides by what stays unanswered when a path is suspect, and when it is lost (B05, B07).
///
/// No I/O and no clock. Its driver says what was sent that needs an answer and that anything was heard, bytes that the
/// peer acknowledges included: whoever is slow but moves is alive (B09).
///
/// An answer that does not come looks like one that takes its time, because what asked for it has been acknowledged. So a
/// path that an application has used and that is quiet since is asked once: one exchange after each burst (B04). Where
/// much was on its way the question comes soon: a NAT that has forgotten a client which only receives learns its new port
/// from nothing else (B32).
package struct AnswerWatch: Sendable {
    /// What to do.
    package enum Action: Sendable, Equatable {
        case nothing
        /// Ask the peer for a sign of life.
        case probe
        case lost
    }

    /// A timer that is so late says that this end did not run, and nothing about the path.
    private static let lateness = Duration.seconds(1)

    /// How often a suspect path is asked: questions get lost too.
    private static let probeInterval = Duration.milliseconds(500)

    /// Bytes that came without a pause; after so many of them a silence is sudden, and asked about until it ends.
    private static let flood = 16 << 10
    private static let pause = Duration.milliseconds(300)

    private let probeAfter: Duration
    private let lostAfter: Duration
    /// Since when the oldest of what was sent after the last sign of life waits for an answer.
    private var waitingSince: Instant?
    /// When the path became suspect.
    private var probed: Instant?
    private var lastProbe: Instant?
    /// When bytes of an application came or went last, until the path was asked after them.
    private var lastUse: Instant?
    /// How many came since the last pause.
    private var flowed = 0
    /// When a sudden silence was asked about last, and whether nothing was heard since.
    private var lastQuestion: Instant?
    private var isSilent = false

    /// Makes the watch of a path; nil where the options want none.
    package init?(_ keepalive: Keepalive) {
        guard keepalive.interval != nil, let lostAfter = keepalive.lostAfter else { return nil }
        self.lostAfter = lostAfter
        probeAfter = min(keepalive.probeAfter, lostAfter)
    }

    /// Whether something waits for an answer.
    package var isWaiting: Bool { waitingSince != nil }

    /// Something was sent that needs an answer.
    package mutating func sent(now: Instant) {
        if waitingSince == nil { waitingSince = now }
    }

    /// Bytes of an application came or went; `count` is how many came.
    package mutating func used(_ count: Int = 0, now: Instant) {
        if let before = lastUse ?? lastQuestion, now - before < Self.pause { flowed += count } else { flowed = count }
        lastUse = now
    }

    /// A sign of life, or a new path about which nothing is known.
    package mutating func heard() {
        waitingSince = nil
        probed = nil
        lastProbe = nil
        isSilent = false
    }

    /// A sign of life came at that instant, and something still waits for an answer.
    package mutating func progressed(at instant: Instant) {
        guard let since = waitingSince, instant > since else { return }
        waitingSince = instant
        if let asked = probed, instant > asked { probed = nil }
    }

    /// When ``timeout(now:isAnswered:patience:)`` wants to be asked next.
    package var deadline: Instant? {
        if let lost, let lastProbe { return min(lost, lastProbe + Self.probeInterval) }
        let suspect = (waitingSince ?? lastUse).map { $0 + probeAfter }
        guard let question else { return suspect }
        return min(question, suspect ?? question)
    }

    /// When a silence is asked about, for the first time or again, that came suddenly.
    private var question: Instant? {
        guard probed == nil else { return nil }
        if isSilent, let waitingSince {
            // At last the path is suspect, which comes first.
            let next = lastQuestion.map { $0 + Self.pause }
            return next.flatMap { $0 < waitingSince + probeAfter ? $0 : nil }
        }
        return flowed < Self.flood ? nil : lastUse.map { $0 + min(Self.pause, probeAfter) }
    }

    private var lost: Instant? { probed.map { $0 + (lostAfter - probeAfter) } }

    /// The deadline has passed, or may have.
    ///
    /// - Parameters:
    ///   - isAnswered: whether nothing that was sent needs an answer any more.
    ///   - patience: how long an answer may take on this path, if that is longer than the limit.
    package mutating func timeout(now: Instant, isAnswered: Bool, patience: Duration = .zero) -> Action {
        guard let deadline, now >= deadline else { return .nothing }
        if waitingSince != nil, isAnswered { heard() }
        if let question, now >= question {
            lastUse = nil
            lastQuestion = now
            isSilent = true
            return .probe
        }
        guard let since = waitingSince else {
            guard let used = lastUse, now >= used + probeAfter else { return .nothing }
            lastUse = nil
            return .probe
        }
        lastUse = nil
        lastProbe = now
        if now >= deadline + Self.lateness {
            waitingSince = now + (.zero - probeAfter)
            probed = now
            return .probe
        }
        guard let lost else {
            probed = now
            return .probe
        }
        guard now >= lost else { return .probe }
        if now - since >= patience { return .lost }
        probed = now
        return .probe
    }
}
