internal import Synchronization
package import TransportKit

/// A path memory that is told which network the name of a stay means. Any thread may call it; calls do not block.
package protocol NetworkMemory: PathMemory {
    /// A stay has begun on a network that is known by a vague name only; called before anybody dials under its own name.
    func began(_ stay: String, under vague: String)

    /// The network of a stay is told apart from others now; called once for each stay at most.
    func tellApart(_ stay: String, as network: String)

    /// The name under which the network of a dial is kept.
    func name(of network: String) -> String
}

/// One that lives as long as the process.
package final class InProcessNetworkMemory: NetworkMemory {
    private let networks = Mutex(NetworkTable())
    private let time: any TimeSource

    package init(time: any TimeSource) {
        self.time = time
    }

    package func kept(_ path: PathKey) -> PathKey? { networks.withLock { $0.kept(path) } }

    package func history(of path: PathKey, at now: WallTime) -> PathHistory {
        networks.withLock { $0.history(of: path, at: now) }
    }

    package func change(_ path: PathKey, at now: WallTime, _ body: (inout PathHistory) -> Void) {
        networks.withLock { _ = $0.change(path, at: now, body) }
    }

    package func all(at now: WallTime) -> [PathKey: PathHistory] { networks.withLock { $0.all(at: now) } }

    package func began(_ stay: String, under vague: String) {
        networks.withLock { $0.began(stay, under: vague) }
    }

    package func tellApart(_ stay: String, as network: String) {
        let now = time.wallNow()
        networks.withLock { _ = $0.tellApart(stay, as: network, at: now) }
    }

    package func name(of network: String) -> String { networks.withLock { $0.network(of: network) ?? network } }
}
