/// The name of a transport, as written in a config file.
public struct TransportName: Sendable, Hashable, RawRepresentable, ExpressibleByStringLiteral,
    CustomStringConvertible
{
    /// The name.
    public let rawValue: String

    /// Makes a name.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Makes a name.
    public init(stringLiteral value: String) {
        rawValue = value
    }

    /// The name.
    public var description: String { rawValue }

    /// QUIC over UDP.
    public static let quic: TransportName = "quic"
    /// WebSocket over TCP.
    public static let webSocket: TransportName = "websocket"
    /// The in-process pair.
    public static let memory: TransportName = "memory"

    /// The name as a person reads it: "QUIC", "WebSocket" (R24).
    public var displayName: String {
        switch self {
        case .quic: "QUIC"
        case .webSocket: "WebSocket"
        default: rawValue
        }
    }
}

/// Every token that two ends must agree on, in one place (R3, R143). `docs/protocol.md` says what they mean.
public enum WireNames {
    /// ALPN of a client's link to the door.
    public static let alpnApp = "tk-app/1"
    /// ALPN of a box's link to the door.
    public static let alpnBox = "tk-box/1"
    /// ALPN of a plain link between two peers.
    public static let alpnPeer = "tk/1"
    /// ALPN of HTTP/1.1, which the WebSocket needs (B39).
    public static let alpnHTTP = "http/1.1"
    /// WebSocket sub-protocol of a link with streams.
    public static let muxSubprotocol = "tk-mux.1"
}
