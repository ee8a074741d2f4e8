public import TransportKit

/// A listening TCP socket for tasks.
///
/// ```swift
/// let listener = try await TCPListener.bind(.loopback(port: 8080), loop: loop)
/// while true {
///     let connection = try await listener.accept()
///     …
/// }
/// ```
///
/// Connections that nobody accepts wait, a few here and the rest in the kernel's queue. When the process has no descriptor
/// left, new ones are refused until it has (B46). One task may wait in ``accept()`` at a time. ``close()`` ends it; so does
/// dropping the last reference.
public actor TCPListener {
    /// The address it listens at, with the port that the system chose where none was named.
    public nonisolated let localAddress: SocketAddress
    /// The loop that the listener and its connections belong to.
    public nonisolated let loop: EventLoop

    /// The loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    private let acceptor: TCPAcceptor
    private let queue: AcceptQueue
    private var isAccepting = false
    private var isClosed = false

    private init(acceptor: TCPAcceptor, queue: AcceptQueue, loop: EventLoop) {
        self.acceptor = acceptor
        self.queue = queue
        self.loop = loop
        localAddress = acceptor.localAddress
    }

    deinit {
        let acceptor = acceptor
        let queue = queue
        loop.execute {
            acceptor.close()
            queue.dropAll()
        }
    }

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - address: where; port 0 lets the system choose. `[::]` serves IPv4 too.
    ///   - loop: where the listener and its connections live.
    ///   - log: hears of connections that had to be refused.
    /// - Throws: ``/TransportKit/TransportError/Code/addressInUse`` or another error of the system.
    public static func bind(
        _ address: SocketAddress, loop: EventLoop, log: Log = Log()
    ) async throws(TransportError) -> TCPListener {
        try await loop.run { () throws(TransportError) in
            let acceptor = try TCPAcceptor.bind(address, loop: loop, log: log)
            let queue = AcceptQueue(acceptor)
            acceptor.handler = queue
            return TCPListener(acceptor: acceptor, queue: queue, loop: loop)
        }
    }

    /// Waits for the next connection.
    ///
    /// - Throws: ``/TransportKit/TransportError/Code/cancelled`` when the task is cancelled, the listener closed or its loop
    ///   shut down.
    public func accept() async throws(TransportError) -> TCPConnection {
        guard !isAccepting else { throw TransportError(.misuse, "two tasks accept from one listener") }
        isAccepting = true
        defer { isAccepting = false }
        while true {
            if isClosed { throw TransportError(.cancelled, "the listener at \(localAddress) was closed") }
            if queue.isStopped { throw .loopStopped }
            if let (socket, events) = queue.next() { return TCPConnection(socket: socket, events: events) }
            guard await queue.changed.wait() else {
                throw TransportError(.cancelled, "accepting at \(localAddress) was cancelled")
            }
        }
    }

    /// Stops listening and resets connections that nobody has accepted. A second call does nothing.
    public func close() {
        isClosed = true
        acceptor.close()
        queue.dropAll()
        queue.changed.signal()
    }
}

/// Connections between the kernel and whoever accepts them.
///
/// Sendable is sound: all but `changed` is touched on the loop alone.
private final class AcceptQueue: TCPAcceptorHandler, @unchecked Sendable {
    let changed = Signal()
    private unowned let acceptor: TCPAcceptor
    private var waiting: [(TCPSocket, TCPEvents)] = []
    private(set) var isStopped = false
    private static let limit = 64

    init(_ acceptor: TCPAcceptor) { self.acceptor = acceptor }

    func accepted(_ socket: TCPSocket) {
        let events = TCPEvents()
        socket.handler = events
        waiting.append((socket, events))
        if waiting.count >= Self.limit { acceptor.pause() }
        changed.signal()
    }

    func acceptorStopped() {
        isStopped = true
        dropAll()
        changed.signal()
    }

    func next() -> (TCPSocket, TCPEvents)? {
        guard !waiting.isEmpty else { return nil }
        if waiting.count == Self.limit { acceptor.resume() }
        return waiting.removeFirst()
    }

    func dropAll() {
        for (socket, _) in waiting { socket.reset() }
        waiting = []
    }
}
