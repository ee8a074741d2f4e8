internal import Synchronization

/// Remembers, per network and destination, what won and what broke (R37, R48, R55).
///
/// Any thread may call it; calls must not block. The network is named by an opaque key, so that no implementation sees
/// where somebody has been (R58); with no key nothing is written and nothing is known.
public protocol PathMemory: Sendable {
    /// What is known of a path at `now`, expired entries left out.
    func history(of path: PathKey, at now: WallTime) -> PathHistory

    /// Changes what is known of a path, as one step. `body` must not call the memory.
    func change(_ path: PathKey, at now: WallTime, _ body: (inout PathHistory) -> Void)

    /// Everything that is known at `now`.
    func all(at now: WallTime) -> [PathKey: PathHistory]
}

/// A destination seen from a network.
public struct PathKey: Sendable, Hashable {
    /// An opaque name of the network.
    public var network: String
    /// The destination, as host and port.
    public var destination: String

    /// Makes a key.
    public init(network: String, destination: String) {
        self.network = network
        self.destination = destination
    }
}

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
