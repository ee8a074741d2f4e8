/// What a carrier is doing.
public enum CarrierState: Sendable, Hashable {
    /// Nothing is open and nothing is asked for.
    case idle
    /// A session is being opened; `attempt` counts from 1 since the last session that lasted.
    case connecting(attempt: Int)
    /// A session is open.
    case open(CarrierPath)
    /// The last attempt failed; the next starts at `until`.
    case waiting(until: Instant, after: Close)
    /// The carrier was closed.
    case closed(Close)
}

/// How an open session travels (R138, R139).
public struct CarrierPath: Sendable, Hashable {
    /// What carries: `direct`, `tunnel`, `relay` …
    public var carrier: String
    /// How it travels.
    public var transport: TransportName
    /// The peer's address.
    public var remoteAddress: SocketAddress?

    /// Makes a path.
    public init(carrier: String, transport: TransportName, remoteAddress: SocketAddress? = nil) {
        self.carrier = carrier
        self.transport = transport
        self.remoteAddress = remoteAddress
    }
}

extension CarrierState: CustomStringConvertible {
    /// The state as a person reads it: "Connected · QUIC" (R137).
    public var description: String {
        switch self {
        case .idle: "Idle"
        case .connecting(let attempt): attempt <= 1 ? "Connecting" : "Connecting · attempt \(attempt)"
        case .open(let path): "Connected · \(path.transport.displayName)"
        case .waiting(_, let close): "Waiting · \(close)"
        case .closed(let close): "Closed · \(close)"
        }
    }
}
