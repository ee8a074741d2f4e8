internal import Synchronization

/// Where any thread leaves word for the core: handles that were dropped.
final class MuxCoreMail: Sendable {
    private struct State {
        var released: [UInt32] = []
        var isDropped = false
    }

    private let state = Mutex(State())

    /// - Returns: whether it is the first word since the last was taken.
    func release(_ id: UInt32) -> Bool {
        leave { $0.released.append(id) }
    }

    /// - Returns: whether it is the first word since the last was taken.
    func drop() -> Bool {
        leave { $0.isDropped = true }
    }

    private func leave(_ word: (inout State) -> Void) -> Bool {
        state.withLock { state in
            defer { word(&state) }
            return state.released.isEmpty && !state.isDropped
        }
    }

    func take() -> (released: [UInt32], isDropped: Bool) {
        state.withLock { state in
            defer { state = State() }
            return (state.released, state.isDropped)
        }
    }
}
