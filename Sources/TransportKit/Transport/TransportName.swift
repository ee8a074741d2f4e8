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
