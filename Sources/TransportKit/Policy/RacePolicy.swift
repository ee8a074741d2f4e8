/// Decides what to dial, and when. A pure value: the same question always gets the same answer.
///
/// The race asks once per dial and starts each attempt `delay` after the dial began, or at once if the attempts before
/// it have all failed by then. Every transport must be planned: a policy reorders and delays, it never removes (R54).
public protocol RacePolicy: Sendable {
    /// The name under which it is registered.
    var name: String { get }

    /// The attempts of one dial, in the order they start.
    ///
    /// - Parameters:
    ///   - transports: what is configured, in the order of preference.
    ///   - record: what is remembered of the destination on this network.
    func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt]
}

/// One attempt of a race.
public struct Attempt: Sendable, Hashable {
    /// What to dial.
    public var transport: TransportName
    /// How long after the start of the dial.
    public var delay: Duration

    /// Makes an attempt.
    public init(_ transport: TransportName, delay: Duration) {
        self.transport = transport
        self.delay = delay
    }
}

/// The first transport gets a head start, 250 ms by default (R34); the one that won last on this network goes first
/// (R37), unless it was demoted there (R48).
public struct HeadStartRacePolicy: RacePolicy {
    /// How long each attempt waits for the one before it.
    public let headStart: Duration
    /// How long an attempt waits that stands back: the others need several round trips where it needs one, and it must
    /// not win only because of that. Where they fail it is dialled at once.
    public let demotedHeadStart: Duration

    /// Makes the policy.
    public init(headStart: Duration = .milliseconds(250), demotedHeadStart: Duration = .seconds(2)) {
        self.headStart = headStart
        self.demotedHeadStart = demotedHeadStart
    }

    /// `head-start`
    public var name: String { "head-start" }

    /// The remembered winner first, the demoted last, each `headStart` after the one before.
    public func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        let (sound, demoted) = order(transports, record: record)
        let attempts = sound.enumerated().map { Attempt($0.element, delay: headStart * $0.offset) }
        return attempts + standingBack(demoted, behind: attempts, headStart: headStart, by: demotedHeadStart)
    }
}

/// The head start fits the network: one and a half round trips, between 10 ms and 2 s; a quarter of a second where the
/// round trip is not known. A transport that was demoted and has not proven itself since gets none.
public struct AdaptiveRacePolicy: RacePolicy {
    /// The head start where the round trip is not known.
    public let unknown: Duration
    /// The shortest head start.
    public let shortest: Duration
    /// The longest head start.
    public let longest: Duration

    /// Makes the policy.
    public init(
        unknown: Duration = .milliseconds(250), shortest: Duration = .milliseconds(10), longest: Duration = .seconds(2)
    ) {
        self.unknown = unknown
        self.shortest = shortest
        self.longest = longest
    }

    /// `adaptive`
    public var name: String { "adaptive" }

    /// The remembered winner first, the demoted last, each a head start after the one before.
    public func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        let headStart = record.smoothedRoundTrip.map { min(max($0 * 3 / 2, shortest), longest) } ?? unknown
        let (sound, demoted) = order(transports, record: record)
        var delay = Duration.zero
        let attempts = sound.map { transport in
            defer { if !record.unproven.contains(transport) { delay += headStart } }
            return Attempt(transport, delay: delay)
        }
        return attempts + standingBack(demoted, behind: attempts, headStart: headStart, by: longest)
    }
}

/// The order of preference with the remembered winner first, and apart from it those that stand back.
private func order(
    _ transports: [TransportName], record: PathRecord
) -> (sound: [TransportName], demoted: [TransportName]) {
    var order = transports
    if let winner = record.winner, let index = order.firstIndex(of: winner) {
        order.insert(order.remove(at: index), at: 0)
    }
    let sound = order.filter { record.demotions[$0] == nil }
    let demoted = order.filter { record.demotions[$0] != nil }
    // Where all stand back, none does.
    return sound.isEmpty ? (demoted, []) : (sound, demoted)
}

private func standingBack(
    _ demoted: [TransportName], behind attempts: [Attempt], headStart: Duration, by wait: Duration
) -> [Attempt] {
    let last = attempts.map(\.delay).max() ?? .zero
    return demoted.enumerated().map { Attempt($0.element, delay: last + wait + headStart * $0.offset) }
}

/// All at once; whoever opens first carries.
public struct ParallelRacePolicy: RacePolicy {
    /// Makes the policy.
    public init() {}

    /// `parallel`
    public var name: String { "parallel" }

    /// Every transport without delay.
    public func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        transports.map { Attempt($0, delay: .zero) }
    }
}

/// One after the other, in the configured order: the next starts when the one before has failed.
public struct OrderedRacePolicy: RacePolicy {
    /// How long an attempt that neither opens nor fails holds up the next one.
    public let patience: Duration

    /// Makes the policy.
    public init(patience: Duration = .seconds(10)) {
        self.patience = patience
    }

    /// `ordered`
    public var name: String { "ordered" }

    /// The configured order, each `patience` after the one before.
    public func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        transports.enumerated().map { Attempt($0.element, delay: patience * $0.offset) }
    }
}
