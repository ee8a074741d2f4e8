internal import Synchronization
internal import TransportIO
internal import TransportKit

/// Event loops beside the host's own, for listeners that run on several.
///
/// They are made when a listener first needs them, are shared by all listeners, and run until ``shutdown()``.
public final class ListenerLoops: Sendable {
    private let loops = Mutex<[EventLoop]>([])

    /// Makes none yet.
    public init() {}

    /// As many as are asked for, always the same ones.
    func first(_ count: Int) throws(TransportError) -> [EventLoop] {
        try loops.withLock { loops throws(TransportError) in
            while loops.count < count { loops.append(try EventLoop(name: "listener \(loops.count + 2)")) }
            return Array(loops.prefix(count))
        }
    }

    /// Stops all of them and waits until their threads have ended; what still runs on them is cut off.
    public func shutdown() async {
        let all = loops.withLock { loops in
            defer { loops = [] }
            return loops
        }
        for loop in all { await loop.shutdown() }
    }
}
