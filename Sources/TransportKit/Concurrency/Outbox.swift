internal import Synchronization

/// What was accepted for sending and has not left yet: the waiting half of a socket's `send`, with the contract that
/// ``Socket`` asks for.
///
/// Any number of tasks put, each waits until there is room; what one put holds is never torn apart. A cancelled ``put(_:weight:)``
/// throws ``Close/cancelled`` and has put nothing. One task of the owner calls ``next()`` and writes what it gets; only
/// its next call makes room for more, so that no more than the limit and one put beyond it is held.
public final class Outbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        /// Of what waits and of what is being written.
        var weight = 0
        var writing = 0
        var putting: [Signal] = []
        var close: Close?
    }

    private let state = Mutex(State())
    private let arrived = Signal()
    private let limit: Int

    /// Makes an empty outbox.
    ///
    /// - Parameter limit: a put waits while the weights of what has not left come to this.
    public init(limit: Int) {
        self.limit = limit
    }

    /// Waits for room and keeps the element.
    ///
    /// - Parameters:
    ///   - element: what is to be sent; it is never torn apart.
    ///   - weight: what it counts for, for example its bytes.
    /// - Throws: the close that ended the outbox.
    public func put(_ element: Element, weight: Int = 1) async throws(Close) {
        let signal = Signal()
        while true {
            let isKept = try state.withLock { state throws(Close) in
                if let close = state.close { throw close }
                guard state.weight < limit else {
                    state.putting.append(signal)
                    return false
                }
                state.elements.append(element)
                state.weight += weight
                return true
            }
            if isKept { return arrived.signal() }
            guard await signal.wait() else {
                state.withLock { state in state.putting.removeAll { $0 === signal } }
                throw .cancelled
            }
        }
    }

    /// Takes all that waits, at least one element, for the one task that writes. What it took before has left by now.
    ///
    /// - Returns: nil when it was finished and is empty, or the task was cancelled.
    public func next() async -> [Element]? {
        while true {
            let (elements, hasEnded, putting) = state.withLock { state in
                defer {
                    state.elements = []
                    state.putting = []
                }
                state.weight -= state.writing
                state.writing = state.weight
                return (state.elements, state.close != nil, state.putting)
            }
            for signal in putting { signal.signal() }
            if !elements.isEmpty { return elements }
            if hasEnded { return nil }
            guard await arrived.wait() else { return nil }
        }
    }

    /// Ends it: every put throws `close` from now on. What waits is still written, then `last`.
    ///
    /// Only the first end counts; ``end(_:)`` after it drops what still waits.
    public func finish(_ close: Close, last: Element? = nil) {
        end(close) { elements in if let last { elements.append(last) } }
    }

    /// Ends it and drops what waits.
    public func end(_ close: Close) {
        end(close) { $0 = [] }
        state.withLock { $0.elements = [] }
    }

    private func end(_ close: Close, _ change: (inout [Element]) -> Void) {
        let putting = state.withLock { state -> [Signal] in
            guard state.close == nil else { return [] }
            state.close = close
            change(&state.elements)
            defer { state.putting = [] }
            return state.putting
        }
        for signal in putting { signal.signal() }
        arrived.signal()
    }
}
