internal import CLinux
public import TransportKit

/// A TCP connection for tasks: what a forward, or a transport of your own, is written with.
///
/// ```swift
/// let connection = try await TCPConnection.connect(to: .name("localhost"), port: 8080, loop: loop)
/// try await connection.write(Bytes("hello"))
/// try await connection.finish()
/// while let bytes = try await connection.read(upTo: 65_536) { … }
/// await connection.close()
/// ```
///
/// **Back-pressure.** Nothing is read ahead and nothing queued: what nobody reads holds the peer up, and a write waits
/// until the kernel has taken all of it.
/// **Concurrency.** One read and one write may wait at a time; a second throws ``/TransportKit/TransportError/Code/misuse``. It is an
/// actor of its loop: a task that runs there (`Task(executorPreference: loop)`) reads and writes without changing threads.
/// **End.** A read answers nil after the peer's last byte, every time. A reset is thrown as
/// ``/TransportKit/TransportError/Code/pathReset``, never taken for an end.
/// **Lifetime.** ``close()`` or ``reset()`` ends it; so does dropping the last reference.
public actor TCPConnection {
    /// This end's address.
    public nonisolated let localAddress: SocketAddress
    /// The peer's address.
    public nonisolated let remoteAddress: SocketAddress
    /// The loop that the connection belongs to.
    public nonisolated let loop: EventLoop

    /// The loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    private let socket: TCPSocket
    private let events: TCPEvents
    private var isReading = false
    private var isWriting = false
    private var room = ReadRoom()

    /// Makes the connection for a socket that is connected, with the events that it was given. On the loop only.
    init(socket: TCPSocket, events: TCPEvents) {
        self.socket = socket
        self.events = events
        loop = socket.loop
        localAddress = socket.localAddress
        remoteAddress = socket.remoteAddress
    }

    deinit {
        let socket = socket
        // A second close does nothing.
        loop.execute { socket.close() }
    }

    /// Connects to a host: looks its name up and tries the addresses, staggered (RFC 8305).
    ///
    /// - Throws: why the attempts failed; ``/TransportKit/TransportError/Code/timedOut`` after `timeout`;
    ///   ``/TransportKit/TransportError/Code/cancelled`` as soon as the task is cancelled.
    public static func connect(
        to host: Host, port: UInt16, loop: EventLoop, timeout: Duration = .seconds(15)
    ) async throws(TransportError) -> TCPConnection {
        try await withTimeout(timeout, time: loop, doing: "connecting to \(host):\(port)") {
            () async throws(TransportError) in
            let addresses = try await Resolver.addresses(of: host, port: port)
            return try await dialStaggered(addresses, time: loop) { address throws(TransportError) in
                try await connect(to: address, loop: loop)
            } discard: { connection in
                await connection.reset()
            }
        } discard: { connection in
            await connection.reset()
        }
    }

    /// Connects to one address. It takes as long as the kernel tries, two minutes or so: cancel the task to give up.
    ///
    /// - Throws: why it failed; ``/TransportKit/TransportError/Code/cancelled`` as soon as the task is cancelled.
    public static func connect(
        to address: SocketAddress, loop: EventLoop
    ) async throws(TransportError) -> TCPConnection {
        let events = TCPEvents()
        let socket = try await loop.run { () throws(TransportError) in
            try TCPSocket.connect(to: address, loop: loop, handler: events)
        }
        guard await events.opened.wait() else {
            _ = try await loop.run { () throws(TransportError) in socket.reset() }
            throw TransportError(.cancelled, "connecting to \(address) was cancelled")
        }
        return try await loop.run { () throws(TransportError) in
            if let failure = events.failure { throw failure }
            return TCPConnection(socket: socket, events: events)
        }
    }

    /// Waits for bytes and returns at least one and at most `limit` of them; nil after the peer's last byte.
    ///
    /// A cancelled read loses nothing: the next one goes on.
    public func read(upTo limit: Int) async throws(TransportError) -> Bytes? {
        guard limit > 0 else { throw TransportError(.misuse, "a read must have room for a byte") }
        guard !isReading else { throw TransportError(.misuse, "two tasks read one connection") }
        isReading = true
        defer { isReading = false }
        while true {
            if socket.mayBeReadable {
                let size = room.size(upTo: limit)
                var result = TCPReadResult.wouldBlock
                let bytes = unsafe Bytes(unsafeUninitializedCapacity: size) { buffer in
                    unsafe result = socket.read(into: buffer)
                    guard case .bytes(let count) = result else { return 0 }
                    return count
                }
                switch result {
                case .bytes(let count):
                    let isMostlyEmpty = room.learn(count: count, room: size)
                    return unsafe isMostlyEmpty ? bytes.withUnsafeBytes { unsafe Bytes(copying: $0) } : bytes
                case .end: return nil
                case .failed(let error): throw error
                case .wouldBlock: break
                }
            }
            guard await events.bytes.wait() else {
                throw TransportError(.cancelled, "reading from \(remoteAddress) was cancelled")
            }
            guard !socket.isClosed else { throw closedError }
        }
    }

    /// Writes all of `bytes`, waiting while the peer is slow to take them.
    ///
    /// A write that is cancelled half way resets the connection, since nobody knows how much has gone.
    public func write(_ bytes: Bytes) async throws(TransportError) {
        guard !isWriting else { throw TransportError(.misuse, "two tasks write to one connection") }
        isWriting = true
        defer { isWriting = false }
        var rest = bytes
        while !rest.isEmpty {
            switch unsafe rest.withUnsafeBytes({ unsafe socket.write($0) }) {
            case .written(let count):
                rest.removeFirst(count)
            case .wouldBlock:
                guard await events.room.wait() else {
                    if rest.count < bytes.count { reset() }
                    throw TransportError(.cancelled, "writing to \(remoteAddress) was cancelled")
                }
                guard !socket.isClosed else { throw closedError }
            case .failed(let error):
                throw error
            }
        }
    }

    /// Ends this end's direction after the bytes written; reading goes on (B12).
    ///
    /// - Throws: ``/TransportKit/TransportError/Code/misuse`` while a write waits.
    public func finish() throws(TransportError) {
        guard !isWriting else { throw TransportError(.misuse, "finished while a write is waiting") }
        socket.shutdownWrite()
    }

    /// Ends the connection at once: the peer sees a reset, never an end, and bytes on their way may be lost.
    public func reset() {
        socket.reset()
        wakeAll()
    }

    /// Closes the connection; the kernel still sends what was written. A second call does nothing.
    ///
    /// If bytes were left unread, Linux sends the peer a reset.
    public func close() {
        socket.close()
        wakeAll()
    }

    private func wakeAll() {
        events.bytes.signal()
        events.room.signal()
    }

    private var closedError: TransportError {
        TransportError(.cancelled, "the connection to \(remoteAddress) was closed by this end")
    }
}
