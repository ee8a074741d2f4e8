internal import Synchronization

/// One call of ``PathAwareSocket/checkPath(within:)``, which the socket's loop settles once.
package final class PathQuestion: Sendable {
    private let settled = Signal()
    private let state = Mutex<Bool?>(nil)

    /// Makes a question that is open.
    package init() {}

    /// Whether the peer answered; nil while it may.
    package var answer: Bool? { state.withLock(\.self) }

    /// Settles it; only the first answer counts.
    package func settle(_ isAnswered: Bool) {
        state.withLock { if $0 == nil { $0 = isAnswered } }
        settled.signal()
    }

    /// Waits for the answer; at most one task may.
    package func answer(
        within limit: Duration, time: any TimeSource, executor: any SerialExecutor & TaskExecutor
    ) async -> Bool {
        let timer = Task(executorPreference: executor) {
            guard (try? await time.sleep(for: limit)) != nil else { return }
            self.settle(false)
        }
        defer { timer.cancel() }
        _ = await settled.wait()
        return answer ?? false
    }
}
