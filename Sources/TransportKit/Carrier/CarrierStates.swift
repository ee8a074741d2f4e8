internal import Synchronization

/// The states of a carrier: the latest value first, then every change.
///
/// Any number of tasks may iterate, each with its own place. A slow reader skips states that were replaced before it
/// looked: it always gets the newest. The sequence ends when the carrier has closed.
public struct CarrierStates: AsyncSequence, Sendable {
    private let source: CarrierStateSource

    init(source: CarrierStateSource) {
        self.source = source
    }

    /// The state right now.
    public var latest: CarrierState { source.latest }

    /// A new reader, which gets the latest value first.
    public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

    /// One reader's place.
    public struct Iterator: AsyncIteratorProtocol {
        private let source: CarrierStateSource
        private let signal = Signal()
        private var seen: UInt64?

        fileprivate init(source: CarrierStateSource) {
            self.source = source
        }

        /// The latest state that this reader has not seen; nil once the carrier has closed or the task is cancelled.
        public mutating func next() async -> CarrierState? {
            while true {
                switch source.poll(after: seen, signal: signal) {
                case .state(let state, let version):
                    seen = version
                    return state
                case .ended:
                    return nil
                case .nothingNew:
                    guard await signal.wait() else {
                        source.forget(signal)
                        return nil
                    }
                }
            }
        }
    }
}

/// Where a carrier says what it is doing. Any thread may set it; readers get it through ``states``.
public final class CarrierStateSource: Sendable {
    fileprivate enum Poll {
        case state(CarrierState, version: UInt64)
        case nothingNew
        case ended
    }

    private struct Inner {
        var latest: CarrierState
        var version: UInt64 = 0
        var waiting: [Signal] = []
    }

    private let inner: Mutex<Inner>

    /// Starts with a state.
    public init(_ initial: CarrierState = .idle) {
        inner = Mutex(Inner(latest: initial))
    }

    /// The state right now.
    public var latest: CarrierState { inner.withLock { $0.latest } }

    /// What readers iterate.
    public var states: CarrierStates { CarrierStates(source: self) }

    /// Replaces the state, unless it is the same or the carrier has closed.
    public func set(_ state: CarrierState) {
        let waiting = inner.withLock { inner -> [Signal] in
            if case .closed = inner.latest { return [] }
            guard state != inner.latest else { return [] }
            inner.latest = state
            inner.version += 1
            defer { inner.waiting = [] }
            return inner.waiting
        }
        for signal in waiting { signal.signal() }
    }

    fileprivate func poll(after seen: UInt64?, signal: Signal) -> Poll {
        inner.withLock { inner in
            if seen != inner.version { return .state(inner.latest, version: inner.version) }
            if case .closed = inner.latest { return .ended }
            inner.waiting.append(signal)
            return .nothingNew
        }
    }

    fileprivate func forget(_ signal: Signal) {
        inner.withLock { inner in inner.waiting.removeAll { $0 === signal } }
    }
}
