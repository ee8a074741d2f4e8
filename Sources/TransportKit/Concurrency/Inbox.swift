public import Synchronization

/// What has arrived and nobody has taken yet: the waiting half of a socket's `receive` and `acceptStream` and of a
/// listener's `accept`, with the contract that ``Socket`` and ``Listener`` ask for.
///
/// One task takes at a time; a second call while one waits throws ``Close/misuse(_:)``. A cancelled call throws
/// ``Close/cancelled`` and loses nothing. What was put before the end is handed out first; then every call throws the
/// one `Close` that ended it.
///
/// Any thread may put. Putting never suspends and never refuses, because what has arrived is here: the owner bounds it
/// by not reading from its wire while the inbox ``isFull``, and ``waitForRoom()`` says when to go on.
///
/// The calls that a message takes are inlinable, because unspecialized generics were a fifth of the cost of a round trip.
public final class Inbox<Element: Sendable>: Sendable {
    @usableFromInline
    struct State {
        @usableFromInline var elements: [Element] = []
        /// What each element counts for, in the same order.
        @usableFromInline var weights: [Int] = []
        @usableFromInline var weight = 0
        @usableFromInline var end: Close?
        @usableFromInline var isTaking = false

        @usableFromInline
        init() {}
    }

    @usableFromInline let state = Mutex(State())
    @usableFromInline let arrived = Signal()
    @usableFromInline let room = Signal()
    @usableFromInline let limit: Int

    /// Makes an empty inbox.
    ///
    /// - Parameter limit: it is full once the weights of what it holds come to this.
    public init(limit: Int = .max) {
        self.limit = limit
    }

    /// Whether the owner should stop reading from its wire.
    @inlinable public var isFull: Bool { state.withLock { $0.weight >= limit } }

    /// How it ended, or nil while it has not.
    public var end: Close? { state.withLock { $0.end } }

    /// Adds an element; after the end it is dropped.
    ///
    /// - Parameters:
    ///   - element: what has arrived.
    ///   - weight: what it counts for, for example its bytes.
    /// - Returns: whether it was kept.
    @inlinable
    @discardableResult
    public func put(_ element: Element, weight: Int = 1) -> Bool {
        let isKept = state.withLock { state in
            guard state.end == nil else { return false }
            state.elements.append(element)
            state.weights.append(weight)
            state.weight += weight
            return true
        }
        if isKept { arrived.signal() }
        return isKept
    }

    /// Ends it. Only the first end counts.
    ///
    /// - Returns: the end that counts.
    @discardableResult
    public func end(_ close: Close) -> Close {
        let end = state.withLock { state in
            let end = state.end ?? close
            state.end = end
            return end
        }
        arrived.signal()
        room.signal()
        return end
    }

    /// Waits until the inbox is not full. At most one task may wait.
    ///
    /// - Returns: false when the inbox has ended or the waiting task was cancelled: there is nothing more to read for.
    public func waitForRoom() async -> Bool {
        while true {
            let (isFull, hasEnded) = state.withLock { ($0.weight >= limit, $0.end != nil) }
            if hasEnded { return false }
            if !isFull { return true }
            guard await room.wait() else { return false }
        }
    }

    /// Waits for elements and takes all that are here, at least one.
    @inlinable
    public func takeAll() async throws(Close) -> [Element] {
        try await take { state in
            state.weight = 0
            state.weights.removeAll(keepingCapacity: true)
            let taken = state.elements
            state.elements = []
            return taken
        }
    }

    /// Waits for an element and takes the oldest.
    @inlinable
    public func takeFirst() async throws(Close) -> Element {
        try await take { state in
            state.weight -= state.weights.removeFirst()
            return state.elements.removeFirst()
        }
    }

    /// Waits until there is an element, and takes with `body` what it wants.
    @inlinable
    func take<Taken: Sendable>(_ body: (inout State) -> Taken) async throws(Close) -> Taken {
        let mayTake = state.withLock { state in
            defer { state.isTaking = true }
            return !state.isTaking
        }
        guard mayTake else { throw .misuse("another task waits for the same thing already") }
        defer { state.withLock { $0.isTaking = false } }
        while true {
            let (taken, end) = state.withLock { state -> (Taken?, Close?) in
                state.elements.isEmpty ? (nil, state.end) : (body(&state), nil)
            }
            if let taken {
                room.signal()
                return taken
            }
            if let end { throw end }
            guard await arrived.wait() else { throw .cancelled }
        }
    }
}
