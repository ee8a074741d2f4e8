/// How a socket finds out that its path still works.
public struct Keepalive: Sendable, Hashable {
    /// How long an open path may be quiet before a ping goes out; nil for no pings (R10, R28).
    public var interval: Duration?
    /// How long the path may be silent before it counts as lost: three heartbeats (R33). Any received byte counts as
    /// life (B09). The smaller of both ends' limits holds.
    public var idleTimeout: Duration
    /// How long bytes may stay unanswered before the end that dialled asks with a ping. Without pings nothing is asked.
    /// After so long without a byte of an application it asks once, too.
    public var probeAfter = Duration.seconds(3)
    /// How long bytes may stay unanswered before the end that dialled gives the path up; nil for the idle timeout alone.
    ///
    /// The listening end waits for its idle timeout: a client that sleeps for a while, or moves, finds its socket again.
    public var lostAfter: Duration? = .seconds(5)

    /// Makes a keepalive; without arguments 15 s and 45 s.
    public init(interval: Duration? = .seconds(15), idleTimeout: Duration = .seconds(45)) {
        self.interval = interval
        self.idleTimeout = idleTimeout
    }
}
