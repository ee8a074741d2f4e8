/// The limits of a relay. The defaults are those of the wire that is in use.
public struct RelayLimits: Sendable, Hashable {
    /// How many streams a room has beside its uplink.
    public var streamsPerRoom = 4
    /// How many sockets the relay holds.
    public var sockets = 4096
    /// How many of them one address may have.
    public var socketsPerAddress = 16
    /// The longest frame, in bytes.
    public var frameBytes = 65_536
    /// How many frames a socket may send at once.
    public var frameBurst = 240
    /// How many more it may send each second.
    public var framesPerSecond = 60
    /// How many bytes a socket may send at once.
    public var byteBurst = 4 << 20
    /// How many more it may send each second.
    public var bytesPerSecond = 512 << 10
    /// How many bytes may wait for one socket.
    public var backlogBytes = 8 << 20
    /// How often one slot of addresses may try to join in a window.
    public var attempts = 30
    /// How long a window is.
    public var attemptWindow = Duration.seconds(60)
    /// How many slots the addresses are spread over.
    public var attemptSlots = 1024
    /// How often the relay pings, reaps and lets rooms turn over.
    public var heartbeat = Duration.seconds(15)
    /// Over which time the rooms turn over after an epoch has ended.
    public var turnSpread = Duration.seconds(300)

    /// Makes the default limits.
    public init() {}
}
