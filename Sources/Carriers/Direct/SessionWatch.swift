internal import Synchronization
internal import TransportKit

/// Sees when the first thing arrives on a session, whether the session lasts, and how it ends.
final class SessionWatch: Sendable {
    /// What it tells, each at most once and ``ended(_:sinceFirstMessage:)`` last.
    enum Event: Sendable {
        /// The session has stood for as long as was asked.
        case lasted
        /// The session is over.
        case ended(Close, sinceFirstMessage: Duration?)
    }

    private struct State {
        var firstArrival: Instant?
        var lasting: Task<Void, Never>?
        var hasEnded = false
    }

    /// A timer that is so late says that this end did not run, and nothing about the path (R60).
    private static let lateness = Duration.seconds(10)

    private let time: any TimeSource
    private let executor: any SerialExecutor & TaskExecutor
    private let duration: Duration?
    private let hasArrived = Atomic(false)
    private let state = Mutex(State())
    private let tell: @Sendable (Event) -> Void

    /// - Parameters:
    ///   - executor: where it waits; what it tells may come from any thread.
    ///   - duration: how long after its first message the session counts as lasting; nil where nobody asks.
    init(
        time: any TimeSource, executor: any SerialExecutor & TaskExecutor, lasting duration: Duration?,
        tell: @escaping @Sendable (Event) -> Void
    ) {
        self.time = time
        self.executor = executor
        self.duration = duration
        self.tell = tell
    }

    /// Whether anything has arrived. Bytes of a stream prove the same as a message does.
    var isProven: Bool { hasArrived.load(ordering: .relaxed) }

    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func arrived() {
        guard !hasArrived.exchange(true, ordering: .relaxed) else { return }
        state.withLock { state in
            let now = time.now()
            state.firstArrival = now
            guard let duration, !state.hasEnded else { return }
            // It is cancelled with the session.
            state.lasting = Task(executorPreference: executor) { [time, tell] in
                var due = now + duration
                while (try? await time.sleep(until: due)) != nil {
                    let woken = time.now()
                    guard woken - due >= Self.lateness else { return tell(.lasted) }
                    // What it slept through has proven nothing.
                    due = woken + duration
                }
            }
        }
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
            state.lasting?.cancel()
            return .some(state.firstArrival)
        }
        guard let firstArrival else { return }
        tell(.ended(close, sinceFirstMessage: firstArrival.map { time.now() - $0 }))
    }
}
