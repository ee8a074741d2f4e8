/// A socket that may have been handed out before its peer has proved to be there.
///
/// What a client sends as early data (0-RTT) reaches the service a round trip sooner, and anybody who has recorded it can
/// send it again, to another listener or another day (RFC 8446 §8). Such a recording never ends the handshake. Nor is it
/// sure that the peer is at the address that it sent from. So a service that wants to answer at once says so with
/// ``Service/answersEarly``, answers what may be answered twice, and waits here before it does anything else. Other services
/// get their sockets when that has happened.
public protocol EarlySocket: Socket {
    /// Waits until the handshake is done: everything that has arrived, and that will arrive, is then from a peer who is there.
    ///
    /// Returns at once where it is done. Any number of tasks may wait. It throws the socket's `Close` where the handshake
    /// will not be done, which takes as long as ``Limits/handshakeTimeout``, and ``Close/cancelled`` where the task is
    /// cancelled.
    func confirmed() async throws(Close)
}
