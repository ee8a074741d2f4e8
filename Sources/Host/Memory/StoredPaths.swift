internal import FoundationEssentials
internal import TransportKit

/// The contents of a path memory as they stand in a file: JSON with a version.
struct StoredPaths: Codable {
    /// The version that this program writes.
    static let version = 1

    /// Why a file cannot be used.
    enum Unreadable: Error {
        /// A newer program has written it.
        case newer(Int)
        /// It is not what this program writes.
        case broken
    }

    var version = Self.version
    var paths: [Path] = []
    /// The networks that were known by a vaguer name before they were told apart, by that name.
    var aliases: [String: String] = [:]

    private struct Header: Decodable {
        var version: Int
    }

    /// Reads a file's bytes. Entries that make no sense are left out.
    init(_ bytes: [UInt8]) throws(Unreadable) {
        let data = Data(bytes)
        let decoder = JSONDecoder()
        guard let header = try? decoder.decode(Header.self, from: data) else { throw .broken }
        guard header.version <= Self.version else { throw .newer(header.version) }
        guard header.version == Self.version, let stored = try? decoder.decode(StoredPaths.self, from: data) else {
            throw .broken
        }
        self = stored
    }

    init(_ entries: [PathKey: PathTable.Entry], aliases: [String: String]) {
        let lasting = entries.filter { !$0.value.history.isPassing }
        paths = lasting.sorted { ($0.key.network, $0.key.destination) < ($1.key.network, $1.key.destination) }.map {
            Path($0.key, $0.value)
        }
        self.aliases = aliases
    }

    /// An entry as it would come back from a file.
    static func rounded(_ entry: PathTable.Entry, of path: PathKey) -> PathTable.Entry { Path(path, entry).entry }

    /// The entries by path.
    var entries: [PathKey: PathTable.Entry] {
        Dictionary(
            paths.map { (PathKey(network: $0.network, destination: $0.destination), $0.entry) }
        ) { $0.changed >= $1.changed ? $0 : $1 }
    }

    /// The file's bytes.
    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self)) + [0x0a]
    }
}

extension StoredPaths {
    /// What is known of one destination on one network.
    struct Path: Codable {
        var network: String
        var destination: String
        var changed: Int64
        var winner: Winner?
        var roundTripMicroseconds: Int64?
        var transports: [String: Transport]

        init(_ key: PathKey, _ entry: PathTable.Entry) {
            network = key.network
            destination = key.destination
            changed = entry.changed.seconds
            winner = entry.history.winner.map(Winner.init)
            roundTripMicroseconds = entry.history.smoothedRoundTrip.map { $0.clampedNanoseconds / 1000 }
            transports = Dictionary(
                uniqueKeysWithValues: entry.history.transports.map { ($0.key.rawValue, Transport($0.value)) })
        }

        var entry: PathTable.Entry {
            var history = PathHistory(winner: winner?.value)
            history.smoothedRoundTrip = roundTripMicroseconds.map { .microseconds(min(max($0, 0), 3_600_000_000)) }
            for (name, transport) in transports { history[TransportName(rawValue: name)] = transport.value }
            return PathTable.Entry(history: history, changed: WallTime(stored: changed))
        }
    }

    struct Winner: Codable {
        var transport: String
        var since: Int64
        var until: Int64

        init(_ winner: PathHistory.Winner) {
            transport = winner.transport.rawValue
            since = winner.since.seconds
            until = winner.until.seconds
        }

        var value: PathHistory.Winner {
            PathHistory.Winner(
                TransportName(rawValue: transport), since: WallTime(stored: since),
                until: WallTime(stored: until, atMostADayAfter: since))
        }
    }

    struct Transport: Codable {
        var strikes: [Strike]?
        var demotion: Standing?
        var demotionsInARow: Int?
        var isUnproven: Bool?
        var lastFailure: Int64?
        var lastCarried: Int64?
        var lastProbe: Int64?

        init(_ history: TransportHistory) {
            strikes = history.strikes.isEmpty ? nil : history.strikes.map(Strike.init)
            demotion = history.demotion.map(Standing.init)
            demotionsInARow = history.demotionsInARow == 0 ? nil : history.demotionsInARow
            isUnproven = history.isUnproven ? true : nil
            lastFailure = history.lastFailure?.seconds
            lastCarried = history.lastCarried?.seconds
            lastProbe = history.lastProbe?.seconds
        }

        var value: TransportHistory {
            var history = TransportHistory()
            history.strikes = (strikes ?? []).prefix(64).compactMap(\.value)
            history.demotion = demotion?.value
            history.demotionsInARow = min(max(demotionsInARow ?? 0, 0), 64)
            history.isUnproven = isUnproven ?? false
            history.lastFailure = lastFailure.map { WallTime(stored: $0) }
            history.lastCarried = lastCarried.map { WallTime(stored: $0) }
            history.lastProbe = lastProbe.map { WallTime(stored: $0) }
            return history
        }
    }

    struct Strike: Codable {
        var time: Int64
        var kind: String
        var reason: String

        init(_ strike: TransportHistory.Strike) {
            time = strike.time.seconds
            kind = strike.kind.rawValue
            reason = strike.reason.printable(limit: 400)
        }

        var value: TransportHistory.Strike? {
            TransportHistory.Strike.Kind(rawValue: kind).map { kind in
                TransportHistory.Strike(
                    time: WallTime(stored: time), kind: kind, reason: reason.printable(limit: 400))
            }
        }
    }

    struct Standing: Codable {
        var since: Int64
        var until: Int64
        var kind: String
        var reason: String

        init(_ demotion: Demotion) {
            since = demotion.since.seconds
            until = demotion.until.seconds
            kind = demotion.kind.rawValue
            reason = demotion.reason.printable(limit: 400)
        }

        var value: Demotion? {
            TransportHistory.Strike.Kind(rawValue: kind).map { kind in
                Demotion(
                    since: WallTime(stored: since), until: WallTime(stored: until, atMostADayAfter: since), kind: kind,
                    reason: reason.printable(limit: 400))
            }
        }
    }
}

extension WallTime {
    /// A time from a file, held within 30,000 years so that nobody's arithmetic with it overflows.
    fileprivate init(stored seconds: Int64) {
        self.init(seconds: min(max(seconds, 0), 1 << 40))
    }

    /// The end of something that lasts a day at most.
    fileprivate init(stored seconds: Int64, atMostADayAfter start: Int64) {
        let end = WallTime(stored: seconds)
        self = min(end, WallTime(stored: start) + PathHistory.lifetime)
    }
}
