internal import Synchronization

/// Whether the program was asked to stop, heard before there is anything that could be stopped.
final class StopRequest: Sendable {
    private struct State {
        var isAsked = false
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// Whether it was asked.
    var isAsked: Bool { state.withLock { $0.isAsked } }

    /// Asks it. Any thread may call it.
    func ask() {
        let action = state.withLock { state in
            state.isAsked = true
            return state.action
        }
        action?()
    }

    /// Lets go of the action: there is nothing left to stop.
    func forget() {
        state.withLock { $0.action = nil }
    }

    /// Has `action` called when it is asked, at once where it already was.
    func then(_ action: @escaping @Sendable () -> Void) {
        let isAsked = state.withLock { state in
            state.action = action
            return state.isAsked
        }
        if isAsked { action() }
    }
}
