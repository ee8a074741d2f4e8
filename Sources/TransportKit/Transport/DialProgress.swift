/// A step of a dial, for logs and reports.
public enum DialProgress: Sendable, Hashable {
    /// The name has these addresses, in the order they will be tried.
    case resolved([SocketAddress])
    /// An attempt at an address began.
    case attempt(SocketAddress)
    /// An attempt at an address failed.
    case attemptFailed(SocketAddress, TransportError)
    /// The transport's own connection stands (TCP: connected); QUIC skips this step.
    case connected(SocketAddress)
    /// The round trip, where the transport measures it by itself, of packets that were sent only once.
    case measured(Duration)
    /// TLS is done.
    case secured
    /// The socket is open.
    case opened
}
