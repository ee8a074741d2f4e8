internal import Synchronization
internal import TransportIO
internal import TransportKit

/// The UDP that a demonstration takes away: QUIC's packets go to a socket that never answers, so what the dial meets is
/// real silence and no error.
final class BlackHole: UDPSocketHandler, Sendable {
    private let loop: EventLoop
    private let socket: Mutex<Holder>

    /// Sendable is sound: the socket is only touched on its loop.
    private struct Holder: @unchecked Sendable {
        var socket: UDPSocket
    }

    /// The port at which nobody answers.
    let port: UInt16

    /// How many datagrams have fallen in.
    var swallowed: Int { count.load(ordering: .relaxed) }

    private let count = Atomic(0)

    private init(_ holder: Holder, loop: EventLoop) {
        self.loop = loop
        port = holder.socket.localAddress.port
        socket = Mutex(holder)
    }

    /// Opens the hole at a loopback address.
    static func open(loop: EventLoop) async throws(TransportError) -> BlackHole {
        try await loop.run { () throws(TransportError) in
            let hole = BlackHole(Holder(socket: try UDPSocket.bind(.loopback(), loop: loop)), loop: loop)
            hole.socket.withLock { $0.socket.handler = hole }
            return hole
        }
    }

    /// Closes the hole.
    func close() async {
        let holder = socket.withLock { $0 }
        loop.execute { holder.socket.close() }
    }

    func received(_ datagram: UnsafeRawBufferPointer, from: SocketAddress, to local: SocketAddress, ecn: UInt8) {
        count.add(1, ordering: .relaxed)
    }

    func receivedAll() {}
    func writable() {}
    func failed(_ error: TransportError) {}
}
