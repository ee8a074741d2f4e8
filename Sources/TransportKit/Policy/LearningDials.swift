internal import Synchronization

/// The paths on which a dial runs only to learn whether a transport works (R38): one at most per network and destination,
/// for all carriers that were made with the same context (R41). Any thread may call it.
public final class LearningDials: Sendable {
    private let paths = Mutex<Set<PathKey>>([])

    /// Makes it with no dial under way.
    public init() {}

    /// Asks whether a dial may begin, and counts it as begun where it may; ``end(on:)`` follows then.
    ///
    /// - Parameter path: where it would be.
    /// - Returns: false where one is under way there.
    public func begin(on path: PathKey) -> Bool {
        paths.withLock { $0.insert(path).inserted }
    }

    /// The dial is over.
    ///
    /// - Parameter path: where it was.
    public func end(on path: PathKey) {
        paths.withLock { _ = $0.remove(path) }
    }
}
