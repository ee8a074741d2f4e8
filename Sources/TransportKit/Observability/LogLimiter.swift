internal import Synchronization

/// Lets one line through per interval and counts the rest, so that a storm of failures is one line a time (B46).
package final class LogLimiter: Sendable {
    private struct State {
        var next = Instant.zero
        var suppressed = 0
    }

    private let state = Mutex(State())
    private let interval: Duration
    private let time: any TimeSource

    /// Makes one that lets a line through now.
    package init(interval: Duration = .seconds(10), time: any TimeSource) {
        self.interval = interval
        self.time = time
    }

    /// Hands `write` how many lines were held back since the last one, if it is time for one.
    package func run(_ write: (_ suppressed: Int) -> Void) {
        let now = time.now()
        let suppressed: Int? = state.withLock { state in
            guard now >= state.next else {
                state.suppressed += 1
                return nil
            }
            state.next = now + interval
            defer { state.suppressed = 0 }
            return state.suppressed
        }
        if let suppressed { write(suppressed) }
    }

    /// Hands `write` the end of the line instead: how many more there were, where there were any.
    package func run(_ write: (_ more: String) -> Void) {
        run { (suppressed: Int) in
            write(suppressed > 0 ? " (and \(suppressed) more since the last line)" : "")
        }
    }
}
