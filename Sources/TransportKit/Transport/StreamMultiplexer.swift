/// Gives streams to a socket that has only messages.
///
/// A message-only transport is handed one when it is made; it agrees on `subprotocol` with its peer and wraps the socket
/// before it hands it out. A transport therefore needs to know no carrier.
public protocol StreamMultiplexer: Sendable {
    /// The name both ends agree on.
    var subprotocol: String { get }

    /// Wraps a socket on which nothing has been sent or received yet.
    ///
    /// - Parameters:
    ///   - socket: the socket to wrap.
    ///   - isDialer: whether this end dialled; the two ends number their streams apart by it.
    ///   - limits: the bounds of the new socket and of its streams.
    /// - Returns: a socket with ``Capabilities/streams`` that owns `socket` from now on.
    func wrap(_ socket: any Socket, isDialer: Bool, limits: Limits) async -> any Socket
}
