package import TransportKit

/// Whoever owns a UDP socket. All calls come on the socket's loop.
package protocol UDPSocketHandler: AnyObject {
    /// One datagram has arrived.
    ///
    /// - Parameters:
    ///   - datagram: its bytes, good until the call returns.
    ///   - local: the address that it was sent to: answers must leave from there (B66).
    ///   - ecn: its two ECN bits (RFC 3168).
    func received(
        _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8)

    /// The datagrams that were waiting have been handed over: now is the time to answer.
    func receivedAll()

    /// A send that was blocked would go through now.
    func writable()

    /// A connected socket was told by ICMP that its peer cannot be reached (R35). The socket stays usable.
    func failed(_ error: TransportError)
}

/// What became of a send.
package enum UDPSendResult: Sendable {
    /// The kernel has it, or a single datagram was too big for the path and counts as lost.
    case sent
    /// The kernel has the first `sentBytes`; `writable()` will be called when it takes more.
    case blocked(sentBytes: Int)
    /// The rest was not sent: no route, forbidden by this machine (EPERM), or refused by the peer of a connected socket.
    /// The socket stays usable.
    case failed(TransportError)
}
