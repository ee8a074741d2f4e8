internal import Synchronization

/// Remembers, per network and destination, what won and what broke (R37, R48, R55).
///
/// Any thread may call it; calls must not block. The network is named by an opaque key, so that no implementation sees
/// where somebody has been (R58); with no key nothing is written and nothing is known.
public protocol PathMemory: Sendable {
    /// What is known at `time`, expired entries left out.
    func record(for path: PathKey, at time: WallTime) -> PathRecord

    /// Remembers a winner until `expiry` (R40 says when not to call this).
    func remember(winner: TransportName, for path: PathKey, until expiry: WallTime)

    /// Remembers that a transport stands back.
    func demote(_ transport: TransportName, for path: PathKey, _ demotion: PathRecord.Demotion)

    /// Remembers a measured round trip, smoothed into what is known (RFC 6298 §2: one eighth of the new sample).
    func measured(roundTrip: Duration, for path: PathKey)
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

/// A memory that lives as long as the process. At most 64 paths are kept; the one changed longest ago goes first.
public final class InProcessPathMemory: PathMemory {
    private struct Entry {
        var winner: (TransportName, until: WallTime)?
        var demotions: [TransportName: PathRecord.Demotion] = [:]
        var smoothedRoundTrip: Duration?
        var used: UInt64 = 0
    }

    private struct State {
        var entries: [PathKey: Entry] = [:]
        var clock: UInt64 = 0

        mutating func change(_ path: PathKey, limit: Int, _ body: (inout Entry) -> Void) {
            clock += 1
            body(&entries[path, default: Entry()])
            entries[path]?.used = clock
            if entries.count > limit, let oldest = entries.min(by: { $0.value.used < $1.value.used })?.key {
                entries[oldest] = nil
            }
        }
    }

    private let state = Mutex(State())
    private let limit: Int

    /// Makes an empty memory of at most `limit` paths.
    public init(limit: Int = 64) {
        self.limit = limit
    }

    /// What is known at `time`, expired entries left out.
    public func record(for path: PathKey, at time: WallTime) -> PathRecord {
        state.withLock { state in
            guard let entry = state.entries[path] else { return PathRecord() }
            return PathRecord(
                winner: entry.winner.flatMap { $0.until > time ? $0.0 : nil },
                demotions: entry.demotions.filter { $0.value.until > time },
                smoothedRoundTrip: entry.smoothedRoundTrip)
        }
    }

    /// Remembers a winner until `expiry`.
    public func remember(winner: TransportName, for path: PathKey, until expiry: WallTime) {
        state.withLock { $0.change(path, limit: limit) { $0.winner = (winner, expiry) } }
    }

    /// Remembers that a transport stands back.
    public func demote(_ transport: TransportName, for path: PathKey, _ demotion: PathRecord.Demotion) {
        state.withLock { $0.change(path, limit: limit) { $0.demotions[transport] = demotion } }
    }

    /// Remembers a measured round trip.
    public func measured(roundTrip: Duration, for path: PathKey) {
        state.withLock { state in
            state.change(path, limit: limit) { entry in
                entry.smoothedRoundTrip = entry.smoothedRoundTrip.map { $0 * 7 / 8 + roundTrip / 8 } ?? roundTrip
            }
        }
    }
}
