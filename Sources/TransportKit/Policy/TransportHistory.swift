/// What is known of one transport on one path.
public struct TransportHistory: Sendable, Hashable {
    /// One failure that counts, as long as it does.
    public struct Strike: Sendable, Hashable {
        /// What failed.
        public enum Kind: String, Sendable, Hashable {
            /// It did not open.
            case opening
            /// It opened and broke early.
            case carrying
        }

        /// When.
        public var time: WallTime
        /// What failed.
        public var kind: Kind
        /// How, in plain words.
        public var reason: String

        /// Makes a strike.
        public init(time: WallTime, kind: Kind, reason: String) {
            self.time = time
            self.kind = kind
            self.reason = reason
        }
    }

    /// Failures that have not led to a demotion, oldest first; a day's at most.
    public var strikes: [Strike] = []
    /// Its standing back, while that lasts.
    public var demotion: Demotion?
    /// How often it was demoted without having been sound in between.
    public var demotionsInARow = 0
    /// It was demoted and has not carried anything since.
    public var isUnproven = false
    /// When it failed last, in whatever way.
    public var lastFailure: WallTime?
    /// When it brought something last.
    public var lastCarried: WallTime?
    /// When it was dialled last only to learn whether it works.
    public var lastProbe: WallTime?

    /// Makes the history of a transport that nothing is known of.
    public init() {}

    mutating func prune(at now: WallTime) {
        let dayAgo = now + (.zero - PathHistory.lifetime)
        let counts = { (time: WallTime) in time <= now && time > dayAgo }
        strikes.removeAll { !counts($0.time) }
        lastFailure = lastFailure.flatMap { counts($0) ? $0 : nil }
        lastCarried = lastCarried.flatMap { counts($0) ? $0 : nil }
        lastProbe = lastProbe.flatMap { counts($0) ? $0 : nil }
        guard let known = demotion else { return }
        if known.since > now {
            demotion = Demotion(since: now, until: now + known.lifetime, kind: known.kind, reason: known.reason)
        } else if known.until <= now {
            demotion = nil
        }
    }
}
