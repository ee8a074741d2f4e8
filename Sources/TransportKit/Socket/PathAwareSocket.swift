/// A socket that can ask its path for a sign of life, and may move to another path.
///
/// The sockets of QUIC and the WebSocket are such; what wraps one passes both on. A carrier asks when the machine has slept
/// or its network has changed, and dials beside the question, so that whichever way works is found in the time it takes.
public protocol PathAwareSocket: Socket {
    /// Whether it has left the path on which it was dialled: how it ends says nothing about that network (R54).
    var hasMigrated: Bool { get }

    /// The address of this machine that it stands on now.
    var localAddress: SocketAddress? { get }

    /// Asks the peer for a sign of life, from the address that the machine has now where the wire can move there (R19).
    ///
    /// - Parameter limit: how long to wait; longer where this path's round trips are.
    /// - Returns: true as soon as the peer has answered; false where it has not within the limit, or cannot any more. The
    ///   socket lives on until something else ends it, and may be asked again. A cancelled call returns false.
    func checkPath(within limit: Duration) async -> Bool
}
