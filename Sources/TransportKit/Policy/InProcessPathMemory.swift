internal import Synchronization

/// A memory that lives as long as the process.
public final class InProcessPathMemory: PathMemory {
    private let table: Mutex<PathTable>

    /// Makes an empty memory of at most `limit` networks.
    public init(limit: Int = PathTable.networkLimit) {
        table = Mutex(PathTable(limit: limit))
    }

    /// What is known of a path at `now`.
    public func history(of path: PathKey, at now: WallTime) -> PathHistory {
        table.withLock { $0.history(of: path, at: now) }
    }

    /// Changes what is known of a path.
    public func change(_ path: PathKey, at now: WallTime, _ body: (inout PathHistory) -> Void) {
        table.withLock { $0.change(path, at: now, body) }
    }

    /// Everything that is known at `now`.
    public func all(at now: WallTime) -> [PathKey: PathHistory] {
        table.withLock { $0.all(at: now) }
    }
}
