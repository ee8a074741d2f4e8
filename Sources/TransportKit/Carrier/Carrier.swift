/// A way to reach one peer, across however many sockets that takes.
///
/// A carrier opens sessions; each session is a ``Socket``. Carriers compose: one is built over another, or over a
/// dialer, and never names a transport. Making one opens nothing.
///
/// Any task may call it. Cancelling a waiting `open` gives up that attempt and leaves the carrier usable. Whether more
/// than one session may be open at once is the carrier's own affair; a second `open` on one that has room for one ends
/// the first session with 4409.
public protocol Carrier: AnyObject, Sendable {
    /// What its sessions can do at best.
    var capabilities: Capabilities { get }

    /// The least protection that a session of it can have.
    var protection: Protection { get }

    /// Opens a new session; nothing is left of the last one.
    ///
    /// - Parameter firstFlight: the first message, sent as early as the layers below can.
    func open(firstFlight: Bytes?) async throws(Close) -> any Socket

    /// Its state: the latest value first, then every change.
    var states: CarrierStates { get }

    /// The network is back or has changed: do not wait any longer, and do not trust what stood before.
    func wake() async

    /// Ends the carrier and its sessions. Closing twice is harmless; `open` throws from now on.
    func close(_ code: CloseCode, reason: String) async
}

extension Carrier {
    /// Opens a new session.
    public func open() async throws(Close) -> any Socket {
        try await open(firstFlight: nil)
    }

    /// Ends the carrier with 1000.
    public func close() async {
        await close(.normal, reason: "")
    }
}

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
