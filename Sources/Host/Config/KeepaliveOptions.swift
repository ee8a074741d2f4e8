internal import TransportKit

/// How a path is kept alive, as an option; `interval: 0s` switches the pings off, and `lostAfter: 0s` lets nothing but the
/// idle timeout end a silent path.
///
/// Values that would give up a path on which nothing is wrong are refused, and so are those that could have no effect.
struct KeepaliveOptions: Decodable, Sendable {
    var interval: Duration?
    var idleTimeout: Duration?
    var probeAfter: Duration?
    var lostAfter: Duration?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case interval, idleTimeout, probeAfter, lostAfter
    }

    func apply(to keepalive: inout Keepalive) {
        if let interval { keepalive.interval = interval > .zero ? interval : nil }
        if let idleTimeout { keepalive.idleTimeout = idleTimeout }
        if let probeAfter { keepalive.probeAfter = probeAfter }
        if let lostAfter { keepalive.lostAfter = lostAfter > .zero ? lostAfter : nil }
    }
}

extension KeepaliveOptions {
    /// What a ping is given at least for its answer: a satellite takes as long.
    private static let answerTime = Duration.milliseconds(500)

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        interval = try values.decodeIfPresent(Duration.self, forKey: .interval)
        idleTimeout = try values.decodeIfPresent(Duration.self, forKey: .idleTimeout)
        probeAfter = try values.decodeIfPresent(Duration.self, forKey: .probeAfter)
        lostAfter = try values.decodeIfPresent(Duration.self, forKey: .lostAfter)
        if let problem = tooShort ?? useless ?? contradiction {
            throw decoder.invalid(problem.key.rawValue, problem.what)
        }
    }

    private typealias Problem = (key: CodingKeys, what: String)

    /// A value with which nothing works, whatever the others are.
    private var tooShort: Problem? {
        if let interval, interval != .zero, interval < .milliseconds(100) {
            return (.interval, "must be at least 100ms, or 0s for no pings")
        }
        if let idleTimeout, idleTimeout < .seconds(1) { return (.idleTimeout, "must be at least 1s") }
        if let probeAfter, probeAfter < .milliseconds(100) { return (.probeAfter, "must be at least 100ms") }
        if let lostAfter, lostAfter != .zero, lostAfter < .milliseconds(500) {
            return (.lostAfter, "must be at least 500ms, or 0s to leave it to 'idleTimeout'")
        }
        return nil
    }

    /// A value that another one takes its effect.
    private var useless: Problem? {
        if interval == .zero {
            let what = "is of no use without pings; leave it out, or give 'interval' a time"
            if let lostAfter, lostAfter > .zero { return (.lostAfter, what) }
            if probeAfter != nil { return (.probeAfter, what) }
        }
        if lostAfter == .zero, probeAfter != nil {
            return (.probeAfter, "is of no use where 'lostAfter' is 0s; leave one of the two out")
        }
        return nil
    }

    /// Two values that do not go together.
    private var contradiction: Problem? {
        var all = Keepalive()
        apply(to: &all)
        if let pause = all.interval, all.idleTimeout < pause + Self.answerTime {
            return longer(.idleTimeout, idleTimeout, than: .interval, interval, pause, all.idleTimeout)
        }
        if all.interval != nil, let lost = all.lostAfter, lost < all.probeAfter + Self.answerTime {
            return longer(.lostAfter, lostAfter, than: .probeAfter, probeAfter, all.probeAfter, lost)
        }
        // A default that is longer than a short idle timeout does no harm: the path ends sooner.
        for (key, value) in [(CodingKeys.probeAfter, probeAfter), (.lostAfter, lostAfter)] {
            guard let value, value > all.idleTimeout else { continue }
            return (key, "must not be longer than \(Self.named(.idleTimeout, idleTimeout, all.idleTimeout))")
        }
        return nil
    }

    /// The words for a limit that leaves a ping no time; they stand at the limit if the file has it.
    private func longer(
        _ limit: CodingKeys, _ writtenLimit: Duration?, than start: CodingKeys, _ writtenStart: Duration?,
        _ startValue: Duration, _ limitValue: Duration
    ) -> Problem {
        let why = "a ping is given that long for its answer"
        guard writtenLimit != nil else {
            let other = Self.named(limit, writtenLimit, limitValue)
            return (start, "must be at least 500ms shorter than \(other); \(why)")
        }
        return (limit, "must be at least 500ms longer than \(Self.named(start, writtenStart, startValue)); \(why)")
    }

    /// `'interval', which is 15 s unless said otherwise`
    private static func named(_ key: CodingKeys, _ written: Duration?, _ value: Duration) -> String {
        "'\(key.rawValue)', which is \(value.inWords)\(written == nil ? " unless said otherwise" : "")"
    }
}
