/// Decides when a fallback tries its primary again, and how sure it has to be before it goes back. A pure value.
///
/// While the secondary carries, a session of the primary is opened beside it now and then. One that opens, which takes a round
/// trip to the peer, and then stands for ``dwell`` takes over; nothing is ended before that. A fallback goes back once a
/// minute at most, whatever the policy says.
public protocol SwitchBackPolicy: Sendable {
    /// The name that the log gives it.
    var name: String { get }

    /// How long a session of the primary has to stand before it takes over.
    var dwell: Duration { get }

    /// How long to wait before the primary is tried, after the secondary took over and after each attempt.
    ///
    /// - Parameter failures: how many attempts have failed since the secondary took over.
    func pause(failures: Int) -> Duration
}

/// Tries the primary at a fixed interval.
public struct ProbingSwitchBack: SwitchBackPolicy, Hashable {
    /// How long to wait between attempts.
    public var probe: Duration
    /// How long a session of the primary has to stand.
    public var dwell: Duration

    /// Makes the policy.
    ///
    /// - Parameters:
    ///   - probe: how long to wait between attempts.
    ///   - dwell: how long a session of the primary has to stand before it takes over.
    public init(probe: Duration = .seconds(60), dwell: Duration = .seconds(10)) {
        self.probe = probe
        self.dwell = dwell
    }

    /// `probing`.
    public var name: String { "probing" }

    /// Always the same.
    public func pause(failures: Int) -> Duration { probe }
}
