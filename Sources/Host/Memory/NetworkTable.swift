internal import TransportKit

/// What is known of paths, and which networks the names mean that dials know them by. A pure value.
///
/// A network has a vague name, which many have, until its router is known. Each stay on one has a name of its own, so that
/// a session that outlives the stay never says anything of another network of the same vague name (R54, B48).
struct NetworkTable {
    private struct Stay {
        let vague: String
        /// Under what it is kept; nil where it can never be told any more which network it was.
        var network: String?
    }

    /// Nobody holds a session since before so many stays.
    private static let stayLimit = 256

    private(set) var table = PathTable()
    /// The networks that were known by a vague name before they were told apart, by that name.
    private(set) var aliases: [String: String] = [:]
    private var stays: [String: Stay] = [:]
    /// The names of the stays, the oldest first.
    private var order: [String] = []
    /// What the file held when it was last read or written: what others have changed since is told by that.
    private var base = StoredPaths([:], aliases: [:])

    init() {}

    /// What was stored.
    init(_ stored: StoredPaths, at now: WallTime) {
        table = PathTable(stored.entries, at: now)
        aliases = Self.known(stored.aliases, in: table)
        base = stored
    }

    // MARK: - Paths

    /// The path under which that one is kept.
    func kept(_ path: PathKey) -> PathKey? {
        network(of: path.network).map { PathKey(network: $0, destination: path.destination) }
    }

    /// The network that a name means; nil where that can never be told any more.
    func network(of name: String) -> String? {
        if let stay = stays[name] { return stay.network }
        return aliases[name] ?? name
    }

    mutating func history(of path: PathKey, at now: WallTime) -> PathHistory {
        kept(path).map { table.history(of: $0, at: now) } ?? PathHistory()
    }

    /// - Returns: whether there was anything to change.
    mutating func change(_ path: PathKey, at now: WallTime, _ body: (inout PathHistory) -> Void) -> Bool {
        guard let path = kept(path) else {
            var nobody = PathHistory()
            body(&nobody)
            return false
        }
        table.change(path, at: now, body)
        return true
    }

    mutating func all(at now: WallTime) -> [PathKey: PathHistory] { table.all(at: now) }

    // MARK: - Names

    /// A stay has begun on a network that has this vague name. The one that had it last is the best guess, and stays so
    /// until it is told apart.
    mutating func began(_ stay: String, under vague: String) {
        if stays[stay] == nil { order.append(stay) }
        stays[stay] = Stay(vague: vague, network: aliases[vague] ?? vague)
        if order.count > Self.stayLimit { stays[order.removeFirst()] = nil }
    }

    /// The network of a stay is told apart from others now. What was found out under its vague name goes over to it, and
    /// the next stay under that name is taken for one on this network.
    ///
    /// - Returns: whether anything has changed.
    mutating func tellApart(_ stay: String, as network: String, at now: WallTime) -> Bool {
        let vague = stays[stay]?.vague ?? stay
        guard vague != network else { return false }
        // Which network an earlier stay was on that was never told apart nobody can say any more.
        for (name, other) in stays where other.network == vague { stays[name]?.network = nil }
        stays[stay]?.network = network
        let before = table.entries
        var isChanged = aliases[vague] != network
        for (path, entry) in before where path.network == vague {
            isChanged = true
            let target = PathKey(network: network, destination: path.destination)
            let merged = before[target].map { $0.merging(entry) } ?? entry
            table.change(target, at: now) { $0 = merged.history }
            table.remove(path)
        }
        guard isChanged else { return false }
        aliases[vague] = network
        aliases = Self.capped(aliases, in: table, sparing: [vague])
        return true
    }

    // MARK: - The file

    /// What is to be stored.
    var stored: StoredPaths { StoredPaths(table.entries, aliases: Self.known(aliases, in: table)) }

    /// That is in the file now.
    mutating func wrote(_ stored: StoredPaths) { base = stored }

    /// Takes over what others have changed in the file.
    mutating func merge(_ theirs: StoredPaths, at now: WallTime) {
        // Their clock may have stood in the future; the table cuts that.
        let (known, others) = (PathTable(base.entries, at: now).entries, PathTable(theirs.entries, at: now).entries)
        var merged = table.entries
        for (path, entry) in others {
            if let ours = merged[path] {
                merged[path] = StoredPaths.rounded(ours, of: path).merging(
                    entry, since: known[path]?.history ?? PathHistory())
            } else if entry != known[path] {
                // Whoever has written it may not have told the network apart yet.
                let target = PathKey(network: aliases[path.network] ?? path.network, destination: path.destination)
                merged[target] = merged[target].map { $0.merging(entry) } ?? entry
            }
        }
        table = PathTable(merged, at: now)
        let names = Self.known(theirs.aliases, in: table).filter { aliases[$0.key] == base.aliases[$0.key] }
        aliases = Self.capped(
            aliases.merging(names) { _, theirs in theirs }, in: table, sparing: Set(aliases.keys))
        base = theirs
    }

    private static func known(_ aliases: [String: String], in table: PathTable) -> [String: String] {
        let networks = Set(table.entries.keys.map(\.network))
        return capped(aliases.filter { networks.contains($0.value) && !networks.contains($0.key) }, in: table)
    }

    /// At most as many as there are networks: those that are spared, then those of networks that changed last.
    private static func capped(
        _ aliases: [String: String], in table: PathTable, sparing first: Set<String> = []
    ) -> [String: String] {
        guard aliases.count > PathTable.networkLimit else { return aliases }
        let changes = Dictionary(
            table.entries.map { ($0.key.network, $0.value.changed.seconds) }, uniquingKeysWith: max)
        func rank(_ alias: (key: String, value: String)) -> (Int64, String) {
            (first.contains(alias.key) ? .max : changes[alias.value] ?? .min, alias.key)
        }
        let kept = aliases.sorted { rank($0) > rank($1) }.prefix(PathTable.networkLimit)
        return Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
    }
}
