public import TransportKit

/// What a peer of the relay may be told. The defaults are those of the wire that is in use.
public struct RelaySettings: Sendable {
    /// What stands before the epoch where a handle is derived; both ends and every other peer of the room need the same.
    public var info = "ftw/rendezvous/v1/"
    /// How long to wait after a failure. A frame that arrived starts it over, and for a box a connection that lasted as
    /// long as it says (R103, R136).
    public var backoff = Backoff(base: .milliseconds(500), cap: .seconds(60), resetAfter: .seconds(60))
    /// Over which time the rejoining is spread when the epoch turns over; nil for 3 s as a client and 5 s as a box (R104).
    public var turnSpread: Duration?
    /// How often in a row a wrong epoch is corrected at once (R104).
    public var corrections = 2
    /// How far an announced epoch may be from this machine's (R105).
    public var farthestEpoch: Int64 = 1
    /// A dial that is younger than this survives a wake (R106).
    public var youngDial = Duration.seconds(1)
    /// The longest frame, in bytes.
    public var maxFrameBytes = 65_536
    /// The constant shape of what is sent, or nil for frames as they come. All ends of a room need the same.
    public var shape: RelayShape?

    /// Makes the default settings.
    public init() {}
}
