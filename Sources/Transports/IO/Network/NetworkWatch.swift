internal import CLinux
internal import Glibc
internal import Synchronization
public import TransportKit

/// Follows the machine's default routes and addresses, by the kernel's routing socket.
///
/// It lives as long as the host (R60) and belongs to a loop. ``current`` is the latest state, from any thread; ``changes``
/// tells of every state that differs from the one before. When the kernel announces something the watch lists all anew, a
/// moment later, so that a burst of announcements counts as one change.
public final class NetworkWatch: Sendable {
    private struct Shared {
        var state: NetworkState
        var nextID = 0
        var listeners: [Int: AsyncStream<NetworkState>.Continuation] = [:]
    }

    private let shared: Mutex<Shared>
    private let loop: EventLoop
    private let reader: RouteReader

    /// Starts to watch. It returns once the first state is known.
    ///
    /// - Throws: an error of the system where there is no routing socket.
    public static func start(loop: EventLoop) async throws(TransportError) -> NetworkWatch {
        let descriptor = tk_route_open()
        guard descriptor >= 0 else { throw TransportError(errno: -descriptor, doing: "watching the network") }
        return try await start(loop: loop, descriptor: descriptor) { index in
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(IF_NAMESIZE)) { room in
                guard unsafe if_indextoname(index, room.baseAddress) != nil, let base = room.baseAddress else {
                    return nil
                }
                return unsafe String(cString: base)
            }
        }
    }

    /// Starts to watch over a given routing socket, which then belongs to the watch.
    package static func start(
        loop: EventLoop, descriptor: Int32, interfaceName: @escaping @Sendable (UInt32) -> String?
    ) async throws(TransportError) -> NetworkWatch {
        let reader = RouteReader(descriptor: descriptor, loop: loop, interfaceName: interfaceName)
        try await loop.run { () throws(TransportError) in try reader.start() }
        guard await reader.first.wait() else {
            loop.execute { reader.close() }
            throw TransportError(.cancelled, "watching the network was cancelled")
        }
        return try await loop.run { () throws(TransportError) in
            if let failure = reader.failure { throw failure }
            let watch = NetworkWatch(loop: loop, reader: reader)
            reader.changed = { [weak watch] state in watch?.publish(state) }
            return watch
        }
    }

    private init(loop: EventLoop, reader: RouteReader) {
        self.loop = loop
        self.reader = reader
        shared = Mutex(Shared(state: reader.state))
    }

    deinit {
        let reader = reader
        loop.execute { reader.close() }
        shared.withLock { shared in
            for listener in shared.listeners.values { listener.finish() }
        }
    }

    /// The latest state.
    public var current: NetworkState { shared.withLock { $0.state } }

    /// The current state first, then every change; a slow reader misses those in between, never the latest.
    public var changes: AsyncStream<NetworkState> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: NetworkState.self, bufferingPolicy: .bufferingNewest(1))
        let id = shared.withLock { shared in
            shared.nextID += 1
            shared.listeners[shared.nextID] = continuation
            continuation.yield(shared.state)
            return shared.nextID
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.shared.withLock { $0.listeners.removeValue(forKey: id) }
        }
        return stream
    }

    /// Stops watching; ``changes`` ends.
    public func stop() {
        loop.execute { [reader] in reader.close() }
        let listeners = shared.withLock { shared in
            defer { shared.listeners = [:] }
            return shared.listeners
        }
        for listener in listeners.values { listener.finish() }
    }

    private func publish(_ state: NetworkState) {
        shared.withLock { shared in
            guard shared.state != state else { return }
            shared.state = state
            for listener in shared.listeners.values { listener.yield(state) }
        }
    }
}
