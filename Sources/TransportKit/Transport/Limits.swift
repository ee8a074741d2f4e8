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
