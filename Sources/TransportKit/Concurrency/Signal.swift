internal import Synchronization

/// Wakes one waiting task. A signal given while nobody waits is kept for the next wait; several are kept as one.
///
/// It is the building block for the sockets of transports: the owner, confined to its loop, changes its state and gives
/// the signal; the waiting task wakes and looks at the state again. Nothing is handed over inside the signal, so a wait
/// that is cancelled loses nothing.
///
/// Any thread may signal. At most one task may wait at a time; the owner sees to that.
public final class Signal: Sendable {
    private enum State {
        case idle
        case signalled
        // Unsafe is sound: every path out of `waiting` replaces the state under the lock before it resumes.
        case waiting(UnsafeContinuation<Bool, Never>)
    }

    private let state = Mutex(State.idle)

    /// Makes a signal that nobody has given.
    public init() {}

    /// Waits for the signal.
    ///
    /// The task stays on the caller's actor, or goes on there: no other executor comes between.
    ///
    /// - Returns: true when the signal was given, false when the waiting task was cancelled.
    public func wait(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        await withTaskCancellationHandler {
            // A closure is isolated to the actor only if it captures it; otherwise each wait would take two trips through
            // the global executor, which cost as much as a datagram there and back.
            _ = isolation
            return await withUnsafeContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    switch state {
                    case .signalled:
                        state = .idle
                        return true
                    case .idle:
                        if Task.isCancelled { return false }
                        state = .waiting(continuation)
                        return nil
                    case .waiting:
                        preconditionFailure("two tasks wait for one signal")
                    }
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
                guard case .waiting(let continuation) = state else { return nil }
                state = .idle
                return continuation
            }
            waiting?.resume(returning: false)
        }
    }

    /// Wakes the waiting task, or lets the next wait return at once.
    public func signal() {
        let waiting = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
            switch state {
            case .idle, .signalled:
                state = .signalled
                return nil
            case .waiting(let continuation):
                state = .idle
                return continuation
            }
        }
        waiting?.resume(returning: true)
    }
}
