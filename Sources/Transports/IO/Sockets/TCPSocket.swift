internal import CLinux
internal import Glibc
package import TransportKit

/// Whoever owns a TCP socket. All calls come on the socket's loop.
package protocol TCPSocketHandler: AnyObject {
    /// The connection is made; not called for an accepted socket.
    func connected()

    /// A read that answered ``TCPReadResult/wouldBlock``, or the first one, would now return something: bytes, the end or
    /// a failure. Not called again until a read has answered `wouldBlock`.
    func readable()

    /// A write that was not taken whole would go on now.
    func writable()

    /// The connection could not be made. Later failures are returned by the reads and writes that meet them, which includes
    /// the end of the loop.
    func failed(_ error: TransportError)
}

/// What a read gave.
package enum TCPReadResult: Sendable {
    /// So many bytes, at least one.
    case bytes(Int)
    /// Nothing yet; `readable()` will be called.
    case wouldBlock
    /// The peer has ended its direction, after its last byte.
    case end
    /// The connection is gone, ``/TransportKit/TransportError/Code/pathReset`` if the peer reset it. Never an end (B13).
    case failed(TransportError)
}

/// What a write took.
package enum TCPWriteResult: Sendable {
    /// So many bytes; if fewer than given, `writable()` will be called.
    case written(Int)
    /// None; `writable()` will be called.
    case wouldBlock
    /// The connection is gone.
    case failed(TransportError)
}

/// How far what was written on a TCP connection has come.
package struct TCPProgress: Sendable {
    /// Bytes that the peer's kernel has not acknowledged yet.
    package let unacknowledgedBytes: Int
    /// When its last acknowledgement came, to the millisecond.
    package let lastAcknowledgement: Instant
}

/// A TCP connection that never blocks, confined to its loop.
///
/// It buffers nothing: bytes go from the kernel into the caller's memory and back, and what nobody reads holds the peer up.
/// A call that would block is answered without a system call. It lives until ``close()`` or ``reset()``, one of which must
/// be called.
///
/// Sendable is sound: it may be handed about, but every call traps unless it is made on the loop.
package final class TCPSocket: @unchecked Sendable {
    /// Who is told what happens. Kept until ``close()`` or ``reset()``: a weak reference would make every use of the
    /// handler slower.
    package var handler: (any TCPSocketHandler)? {
        didSet { loop.assertCurrent() }
    }
    /// The peer's address.
    package let remoteAddress: SocketAddress
    /// This end's address; known once connected.
    package private(set) lazy var localAddress = SocketAddress(tk_local_address(descriptor)) ?? remoteAddress

    package let loop: EventLoop
    private let descriptor: Int32
    private var registration: Registration?
    private var state: State
    /// Whether a read may find something; false only after the kernel had nothing more.
    private var mayRead: Bool
    private var mayWrite: Bool
    private var wantsReadable = true
    private var wantsWritable = false
    /// Whether an end or a failure is waiting behind the bytes, so that a short read does not mean "nothing more".
    private var hasEnding = false

    private enum State {
        case connecting
        case open
        /// The loop is gone: nothing more can be waited for.
        case stranded
        case closed
    }

    /// How many buffers one vectored write takes at most.
    private static let vectorLimit = 64

    /// Whether this end has closed it.
    var isClosed: Bool { state == .closed }

    /// Starts to connect; `handler` is told how it went. On the loop only.
    package static func connect(
        to remote: SocketAddress, loop: EventLoop, handler: any TCPSocketHandler
    ) throws(TransportError) -> TCPSocket {
        let descriptor = tk_tcp_connect(remote.linux)
        guard descriptor >= 0 else { throw TransportError(errno: -descriptor, doing: "connecting to \(remote)") }
        let socket = TCPSocket(descriptor, remote: remote, loop: loop, state: .connecting)
        socket.handler = handler
        try socket.start()
        return socket
    }

    /// Takes over a connection that was accepted; ``start()`` begins its calls.
    init(accepted descriptor: Int32, remote: SocketAddress, loop: EventLoop) {
        self.descriptor = descriptor
        self.loop = loop
        remoteAddress = remote
        state = .open
        mayRead = true
        mayWrite = true
    }

    private init(_ descriptor: Int32, remote: SocketAddress, loop: EventLoop, state: State) {
        self.descriptor = descriptor
        self.loop = loop
        remoteAddress = remote
        self.state = state
        mayRead = false
        mayWrite = false
    }

    deinit {
        if state != .closed { tk_close(descriptor) }
    }

    func start() throws(TransportError) {
        registration = try loop.register(
            descriptor, interest: [.readable, .writable, .peerFinished], edgeTriggered: true, self)
    }

    // MARK: - Bytes

    /// Whether a read is worth a try; if not, it would answer ``TCPReadResult/wouldBlock``.
    package var mayBeReadable: Bool {
        if !mayRead { wantsReadable = true }
        return mayRead
    }

    /// Reads what is there into `room`, which must not be empty. On the loop only.
    package func read(into room: UnsafeMutableRawBufferPointer) -> TCPReadResult {
        loop.assertCurrent()
        if let unusable { return .failed(unusable) }
        guard mayRead else {
            wantsReadable = true
            return .wouldBlock
        }
        let count = unsafe tk_receive(descriptor, room.baseAddress, room.count)
        if count > 0 {
            if count < room.count, !hasEnding {
                mayRead = false
                wantsReadable = true
            }
            return .bytes(Int(count))
        }
        if count == 0 { return .end }
        guard -count != EAGAIN else {
            mayRead = false
            wantsReadable = true
            return .wouldBlock
        }
        return .failed(error(Int32(-count), "reading from"))
    }

    /// Writes what the kernel takes of `bytes`. On the loop only.
    package func write(_ bytes: UnsafeRawBufferPointer) -> TCPWriteResult {
        guard let blocked = writeBlocked(count: bytes.count) else {
            return written(unsafe tk_send(descriptor, bytes.baseAddress, bytes.count), of: bytes.count)
        }
        return blocked
    }

    /// Writes what the kernel takes of several buffers, in one system call. On the loop only.
    package func write(_ buffers: [UnsafeRawBufferPointer]) -> TCPWriteResult {
        let part = unsafe buffers.prefix(Self.vectorLimit)
        let total = unsafe part.reduce(0) { $0 + $1.count }
        if let blocked = writeBlocked(count: total) { return blocked }
        return unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: part.count) { vectors in
            for unsafe(index, buffer) in unsafe part.enumerated() {
                let base = unsafe UnsafeMutableRawPointer(mutating: buffer.baseAddress)
                unsafe vectors.initializeElement(at: index, to: iovec(iov_base: base, iov_len: buffer.count))
            }
            return written(unsafe tk_send_vector(descriptor, vectors.baseAddress, part.count), of: total)
        }
    }

    private func writeBlocked(count: Int) -> TCPWriteResult? {
        loop.assertCurrent()
        if let unusable { return .failed(unusable) }
        guard count > 0 else { return .written(0) }
        guard mayWrite else {
            wantsWritable = true
            return .wouldBlock
        }
        return nil
    }

    private func written(_ result: Int64, of count: Int) -> TCPWriteResult {
        if result >= 0 {
            if result < count {
                mayWrite = false
                wantsWritable = true
            }
            return .written(Int(result))
        }
        guard -result != EAGAIN else {
            mayWrite = false
            wantsWritable = true
            return .wouldBlock
        }
        return .failed(error(Int32(-result), "writing to"))
    }

    /// How far what was written has come, or nil after the end. On the loop only.
    package var progress: TCPProgress? {
        loop.assertCurrent()
        guard state == .open else { return nil }
        let progress = tk_tcp_progress_of(descriptor)
        guard progress.unacknowledged >= 0, progress.since_acknowledgement >= 0 else { return nil }
        return TCPProgress(
            unacknowledgedBytes: Int(progress.unacknowledged),
            lastAcknowledgement: loop.now() + .milliseconds(-progress.since_acknowledgement))
    }

    // MARK: - Ending

    /// Ends this end's direction after the bytes written; reading goes on (B12). On the loop only.
    package func shutdownWrite() {
        loop.assertCurrent()
        guard state == .open else { return }
        // It fails only where the connection is gone, which reading tells.
        _ = tk_shutdown_write(descriptor)
    }

    /// Closes the connection so that the peer sees a reset, never an end. On the loop only.
    package func reset() {
        loop.assertCurrent()
        guard state != .closed else { return }
        _ = tk_reset_on_close(descriptor)
        close()
    }

    /// Closes the connection; the kernel still sends what was written. Nothing is called any more. A second call does
    /// nothing. On the loop only.
    ///
    /// If bytes were left unread, Linux sends the peer a reset.
    package func close() {
        loop.assertCurrent()
        guard state != .closed else { return }
        state = .closed
        handler = nil
        registration?.cancel()
        tk_close(descriptor)
    }

    /// Why no byte can pass any more.
    private var unusable: TransportError? {
        switch state {
        case .connecting, .open: nil
        case .stranded: .loopStopped
        case .closed: TransportError(.misuse, "the connection was closed by this end")
        }
    }

    private func error(_ number: Int32, _ doing: String) -> TransportError {
        TransportError(errno: number, doing: "\(doing) \(remoteAddress)")
    }
}

extension TCPSocket: DescriptorHandler {
    package func ready(_ readiness: Readiness) {
        switch state {
        case .connecting: finishConnecting(readiness)
        case .open: break
        case .stranded, .closed: return
        }
        guard state == .open else { return }
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) { hasEnding = true }
        if hasEnding || readiness.contains(.readable) { tellReadable() }
        guard state == .open else { return }
        if !readiness.isDisjoint(with: [.writable, .hungUp, .failed]) { tellWritable() }
    }

    package func loopStopped() {
        switch state {
        case .connecting: failConnecting(.loopStopped)
        case .open:
            state = .stranded
            // Whoever waits tries once more, and is told why it cannot go on.
            tellReadable()
            tellWritable()
        case .stranded, .closed: break
        }
    }

    private func tellReadable() {
        mayRead = true
        guard wantsReadable else { return }
        wantsReadable = false
        handler?.readable()
    }

    private func tellWritable() {
        mayWrite = true
        guard wantsWritable else { return }
        wantsWritable = false
        handler?.writable()
    }

    private func finishConnecting(_ readiness: Readiness) {
        guard !readiness.isDisjoint(with: [.writable, .hungUp, .failed]) else { return }
        let number = tk_take_socket_error(descriptor)
        guard number == 0 else { return failConnecting(error(number, "connecting to")) }
        state = .open
        mayWrite = true
        handler?.connected()
    }

    private func failConnecting(_ error: TransportError) {
        let handler = handler
        close()
        handler?.failed(error)
    }
}
