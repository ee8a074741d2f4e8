internal import CLinux
internal import Glibc
package import TransportKit

/// Whoever owns an acceptor. All calls come on its loop.
package protocol TCPAcceptorHandler: AnyObject {
    /// A connection has been accepted; set its handler and keep it before returning, or it is reset.
    func accepted(_ socket: TCPSocket)

    /// The loop was shut down: nobody is accepted any more.
    func acceptorStopped()
}

/// A listening TCP socket, confined to its loop.
///
/// When descriptors run out it refuses what comes, without spinning, and goes on once there are some again (B46). It lives
/// until ``close()``, which must be called.
///
/// Sendable is sound: it may be handed about, but every call traps unless it is made on the loop.
package final class TCPAcceptor: @unchecked Sendable {
    /// Who is told of connections. Not kept alive.
    package weak var handler: (any TCPAcceptorHandler)? {
        didSet { loop.assertCurrent() }
    }
    /// The address it listens at.
    package let localAddress: SocketAddress

    private let loop: EventLoop
    private let log: Log
    private let descriptor: Int32
    private var registration: Registration?
    private var isClosed = false
    private var isPaused = false
    /// Held back, so that there is one to accept with, in order to refuse, when they have run out.
    private var spare: Int32
    private var retry: LoopTimer?
    private var refusals = Refusals()
    private let drops: LogLimiter

    private struct Refusals {
        var count = 0
        var reportedAt: Instant?
    }

    private static let backlog: Int32 = 4096
    private static let acceptsPerTurn = 64
    private static let retryDelay: Duration = .milliseconds(100)

    /// Starts to listen. On the loop only.
    ///
    /// - Parameters:
    ///   - local: where; port 0 lets the system choose. `[::]` serves IPv4 too, unless `v6Only`.
    ///   - reusePort: whether several acceptors share the port (SO_REUSEPORT).
    package static func bind(
        _ local: SocketAddress, loop: EventLoop, reusePort: Bool = false, v6Only: Bool = false, log: Log = Log()
    ) throws(TransportError) -> TCPAcceptor {
        let descriptor = tk_tcp_listen(
            local.linux, reusePort ? 1 : 0, v6Only || !local.isAny ? 1 : 0, Self.backlog)
        guard descriptor >= 0 else { throw TransportError(errno: -descriptor, doing: "listening at \(local)") }
        return try TCPAcceptor(descriptor, local: local, loop: loop, log: log)
    }

    private init(_ descriptor: Int32, local: SocketAddress, loop: EventLoop, log: Log) throws(TransportError) {
        self.descriptor = descriptor
        self.loop = loop
        self.log = log
        drops = LogLimiter(time: loop)
        localAddress = SocketAddress(tk_local_address(descriptor)) ?? local
        spare = tk_spare_descriptor()
        registration = try loop.register(descriptor, interest: .readable, self)
        retry = loop.makeTimer { [weak self] in self?.updateWatch() }
    }

    deinit { release() }

    /// Stops listening. A second call does nothing. On the loop only.
    package func close() {
        loop.assertCurrent()
        guard !isClosed else { return }
        registration?.cancel()
        retry?.disarm()
        release()
    }

    /// Leaves new connections to the kernel's queue until ``resume()``. On the loop only.
    package func pause() {
        isPaused = true
        updateWatch()
    }

    /// Accepts again. On the loop only.
    package func resume() {
        isPaused = false
        updateWatch()
    }

    private func release() {
        guard !isClosed else { return }
        isClosed = true
        tk_close(descriptor)
        if spare >= 0 { tk_close(spare) }
    }

    private func updateWatch() {
        guard !isClosed else { return }
        let mustWait = isPaused || retry?.deadline != nil
        registration?.watch(mustWait ? [] : .readable)
    }

    // MARK: - Running out

    /// Refuses the connection at the head of the queue, with the descriptor that was held back for that.
    private func refuseOne() -> Bool {
        guard spare >= 0 else { return false }
        tk_close(spare)
        let accepted = tk_tcp_accept(descriptor)
        if accepted.descriptor >= 0 {
            _ = tk_reset_on_close(accepted.descriptor)
            tk_close(accepted.descriptor)
            noteRefusal()
        }
        spare = tk_spare_descriptor()
        return accepted.descriptor >= 0
    }

    private func noteRefusal() {
        refusals.count += 1
        let now = loop.now()
        if let reportedAt = refusals.reportedAt, now - reportedAt < .seconds(1) { return }
        refusals.reportedAt = now
        log.warning(
            "refused \(refusals.count) connection\(refusals.count == 1 ? "" : "s") at \(localAddress): no file descriptor is left "
                + "(raise the limit with ulimit -n or LimitNOFILE=)")
        refusals.count = 0
    }

    private func waitForDescriptors() {
        if spare < 0 { spare = tk_spare_descriptor() }
        retry?.arm(at: loop.now() + Self.retryDelay)
        updateWatch()
    }
}

extension TCPAcceptor: DescriptorHandler {
    package func ready(_ readiness: Readiness) {
        for _ in 0..<Self.acceptsPerTurn {
            guard !isClosed, !isPaused else { return }
            let accepted = tk_tcp_accept(descriptor)
            switch -accepted.descriptor {
            case ...0:
                take(accepted)
            case EAGAIN:
                return
            case EMFILE, ENFILE:
                if !refuseOne() { return waitForDescriptors() }
            case ENOBUFS, ENOMEM:
                return waitForDescriptors()
            default:
                // ECONNABORTED and network errors belong to the one connection (accept(2)).
                continue
            }
        }
    }

    package func loopStopped() {
        guard !isClosed else { return }
        close()
        handler?.acceptorStopped()
    }

    private func take(_ accepted: tk_accepted) {
        guard let remote = SocketAddress(accepted.remote) else {
            tk_close(accepted.descriptor)
            return
        }
        let socket = TCPSocket(accepted: accepted.descriptor, remote: remote, loop: loop)
        handler?.accepted(socket)
        guard socket.handler != nil else {
            socket.reset()
            return
        }
        do {
            try socket.start()
        } catch {
            drops.run { (more: String) in log.warning("dropped a connection from \(remote): \(error)\(more)") }
            socket.close()
        }
    }
}
