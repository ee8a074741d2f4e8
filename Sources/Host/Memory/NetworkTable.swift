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

    init() {}

    /// What was stored.
    init(_ entries: [PathKey: PathTable.Entry], aliases: [String: String], at now: WallTime) {
        table = PathTable(entries, at: now)
        self.aliases = Self.known(aliases, in: table)
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
        for (path, entry) in before where path.network == vague {
            let target = PathKey(network: network, destination: path.destination)
            // Nothing was known of it there, or this is newer.
            if before[target].map({ $0.changed < entry.changed }) ?? true {
                table.change(target, at: now) { $0 = entry.history }
            }
            table.remove(path)
        }
        guard aliases[vague] != network else { return false }
        aliases[vague] = network
        aliases = Self.capped(aliases, in: table, sparing: [vague])
        return true
    }

    // MARK: - The file

    /// What is to be stored of the names.
    var storedAliases: [String: String] { Self.known(aliases, in: table) }

    /// Takes over what others have stored.
    mutating func merge(_ entries: [PathKey: PathTable.Entry], aliases theirs: [String: String], at now: WallTime) {
        // Their clock may have stood in the future; the table cuts that, and then ours is as new.
        let merged = table.entries.merging(PathTable(entries, at: now).entries) { ours, theirs in
            theirs.changed > ours.changed ? theirs : ours
        }
        table = PathTable(merged, at: now)
        let known = Self.known(theirs, in: table)
        aliases = Self.capped(
            aliases.merging(known) { ours, _ in ours }, in: table, sparing: Set(aliases.keys))
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
