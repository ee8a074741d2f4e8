/// The bounds that a socket keeps. Every one may be set per dialer and per listener.
public struct Limits: Sendable, Hashable {
    /// One mebibyte (R6).
    public static let defaultMaxMessageBytes = 1 << 20

    /// The longest message in either direction, in bytes.
    public var maxMessageBytes = Limits.defaultMaxMessageBytes
    /// How many bytes of messages may wait for the application before the peer is slowed down.
    public var receiveBufferBytes = 4 << 20
    /// How many bytes of messages may wait for the path before `send` suspends.
    public var sendBufferBytes = 1 << 20
    /// How many bytes each stream may have on its way to the application.
    public var streamWindowBytes = 1 << 20
    /// How many streams the peer may have open at once (R183).
    public var maxStreams = 1024
    /// How long a dial, or the handshake of an accepted connection, may take (R41).
    public var handshakeTimeout = Duration.seconds(10)
    /// How long `close` waits for the peer to take what was sent.
    public var linger = Duration.seconds(5)
    /// How many connections a listener holds at once, those in their handshake included.
    public var maxConnections = 16_384

    /// Makes the default bounds.
    public init() {}
}

/// How a socket finds out that its path still works.
public struct Keepalive: Sendable, Hashable {
    /// How long an open path may be quiet before a ping goes out; nil for no pings (R10, R28).
    public var interval: Duration?
    /// How long the path may be silent before it counts as lost: three heartbeats (R33). Any received byte counts as
    /// life (B09). The smaller of both ends' limits holds.
    public var idleTimeout: Duration

    /// Makes a keepalive; without arguments 15 s and 45 s.
    public init(interval: Duration? = .seconds(15), idleTimeout: Duration = .seconds(45)) {
        self.interval = interval
        self.idleTimeout = idleTimeout
    }
}
