internal import Synchronization
internal import TransportKit

/// Counts what is under way, so that whoever wants to stop can wait until nothing is.
final class Activity: Sendable {
    private struct State {
        var count = 0
        var waiting: [Signal] = []
    }

    private let state = Mutex(State())

    /// How much is under way.
    var count: Int { state.withLock { $0.count } }

    /// Counts `body` while it runs.
    func during(_ body: () async -> Void) async {
        state.withLock { $0.count += 1 }
        await body()
        let waiting = state.withLock { state -> [Signal] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for signal in waiting { signal.signal() }
    }

    /// Returns when nothing is under way, or the task is cancelled.
    func waitUntilIdle() async {
        while true {
            let signal = Signal()
            let isIdle = state.withLock { state in
                if state.count > 0 { state.waiting.append(signal) }
                return state.count == 0
            }
            if isIdle { return }
            guard await signal.wait() else { return }
        }
    }
}
