/// The contents of a path memory, for whoever keeps one: bounded, and nothing in it is older than a day. A pure value.
public struct PathTable: Sendable, Hashable {
    /// How many networks are kept unless said otherwise.
    public static let networkLimit = 64
    /// How many destinations of one network are kept.
    public static let destinationLimit = 64

    /// What is kept of one path.
    public struct Entry: Sendable, Hashable {
        /// What is known.
        public var history: PathHistory
        /// When that changed last.
        public var changed: WallTime

        /// Makes an entry.
        public init(history: PathHistory, changed: WallTime) {
            self.history = history
            self.changed = changed
        }
    }

    private var networks: [String: [String: Entry]] = [:]
    private let limit: Int

    /// Makes an empty table of at most `limit` networks.
    public init(limit: Int = PathTable.networkLimit) {
        self.limit = max(limit, 1)
    }

    /// Makes a table of entries that were stored; what is expired or too much is left out.
    public init(_ entries: [PathKey: Entry], limit: Int = PathTable.networkLimit, at now: WallTime) {
        self.init(limit: limit)
        for (path, entry) in entries {
            networks[path.network, default: [:]][path.destination] = entry
        }
        prune(at: now)
    }

    /// Every entry, as it is.
    public var entries: [PathKey: Entry] {
        var entries: [PathKey: Entry] = [:]
        for (network, destinations) in networks {
            for (destination, entry) in destinations {
                entries[PathKey(network: network, destination: destination)] = entry
            }
        }
        return entries
    }

    /// What is known of a path at `now`.
    public mutating func history(of path: PathKey, at now: WallTime) -> PathHistory {
        networks[path.network]?[path.destination]?.prune(at: now)
        return networks[path.network]?[path.destination]?.history ?? PathHistory()
    }

    /// Changes what is known of a path.
    public mutating func change(_ path: PathKey, at now: WallTime, _ body: (inout PathHistory) -> Void) {
        var history = history(of: path, at: now)
        body(&history)
        networks[path.network, default: [:]][path.destination] = Entry(history: history, changed: now)
        if networks[path.network, default: [:]].count > Self.destinationLimit {
            prune(path.network, at: now, sparing: path)
        }
        if networks.count > limit { prune(at: now, sparing: path) }
    }

    /// Forgets a path.
    public mutating func remove(_ path: PathKey) {
        networks[path.network]?[path.destination] = nil
        if networks[path.network]?.isEmpty == true { networks[path.network] = nil }
    }

    /// Everything that is known at `now`.
    public mutating func all(at now: WallTime) -> [PathKey: PathHistory] {
        prune(at: now)
        return entries.mapValues(\.history)
    }

    /// Drops what is older than a day (R56) and, beyond the limits, what has not changed for the longest.
    ///
    /// - Parameter spared: what has just changed: it is not dropped for others that changed in the same second, as all
    ///   have whose times a clock that was set back has cut.
    private mutating func prune(at now: WallTime, sparing spared: PathKey? = nil) {
        for network in networks.keys { prune(network, at: now, sparing: spared) }
        networks = networks.filter { !$0.value.isEmpty }
        let lastChange = networks.mapValues { $0.values.map(\.changed).max() ?? now }
        let surplus = lastChange.filter { $0.key != spared?.network }.sorted { $0.value < $1.value }
            .prefix(max(networks.count - limit, 0))
        for (network, _) in surplus { networks[network] = nil }
    }

    /// The same for the destinations of one network.
    private mutating func prune(_ network: String, at now: WallTime, sparing spared: PathKey?) {
        for destination in networks[network, default: [:]].keys {
            networks[network]?[destination]?.prune(at: now)
        }
        networks[network] = networks[network]?.filter { !$0.value.history.isEmpty }
        while let destinations = networks[network], destinations.count > Self.destinationLimit,
            let oldest = destinations.filter({ PathKey(network: network, destination: $0.key) != spared })
                .min(by: { $0.value.changed < $1.value.changed })?.key
        {
            networks[network]?[oldest] = nil
        }
    }
}

extension PathTable.Entry {
    fileprivate mutating func prune(at now: WallTime) {
        // A clock that stood in the future has written this; from here on it ages.
        if changed > now { changed = now }
        history.prune(at: now)
        if changed + PathHistory.lifetime <= now { history = PathHistory() }
    }
}
