internal import Synchronization
internal import TransportKit

/// Sees when the first thing arrives on a session, and how it ends.
final class SessionWatch: Sendable {
    private struct State {
        var firstArrival: Instant?
        var hasEnded = false
    }

    private let time: any TimeSource
    private let hasArrived = Atomic(false)
    private let state = Mutex(State())
    private let onEnd: @Sendable (Close, _ sinceFirstMessage: Duration?) -> Void

    init(time: any TimeSource, onEnd: @escaping @Sendable (Close, Duration?) -> Void) {
        self.time = time
        self.onEnd = onEnd
    }

    /// Whether anything has arrived. Bytes of a stream prove the same as a message does.
    var isProven: Bool { hasArrived.load(ordering: .relaxed) }

    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func arrived() {
        guard !hasArrived.exchange(true, ordering: .relaxed) else { return }
        state.withLock { $0.firstArrival = time.now() }
    }

    /// Looks at what a call threw: only what the peer or the path did ends the session.
    func saw(_ close: Close) {
        switch close.origin {
        case .remote, .path: ended(close)
        case .local, .cancellation: break
        }
    }

    /// The session is over.
    func ended(_ close: Close) {
        let firstArrival = state.withLock { state -> Instant?? in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            return .some(state.firstArrival)
        }
        guard let firstArrival else { return }
        onEnd(close, firstArrival.map { time.now() - $0 })
    }
}
