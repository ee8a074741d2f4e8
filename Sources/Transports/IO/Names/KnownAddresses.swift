internal import Synchronization
internal import TransportKit

/// The addresses that names had when they were looked up last, for the time in which the resolver gives no answer (B17).
package final class KnownAddresses: Sendable {
    private struct Entry {
        var addresses: [SocketAddress]
        var time: Instant
    }

    /// Those of this process.
    package static let shared = KnownAddresses()

    /// How many names are kept, and for how long.
    private static let limit = 256
    private static let lifetime = Duration.seconds(86_400)

    private let entries = Mutex<[String: Entry]>([:])

    /// Knows nothing yet.
    package init() {}

    /// A name has these addresses.
    func note(_ name: String, _ addresses: [SocketAddress], at now: Instant) {
        entries.withLock { entries in
            if entries.count >= Self.limit, entries[name] == nil,
                let oldest = entries.min(by: { $0.value.time < $1.value.time })?.key
            {
                entries[oldest] = nil
            }
            entries[name] = Entry(addresses: addresses, time: now)
        }
    }

    /// The addresses that a name had, with this port; nil where that is not known, or too long ago.
    func last(_ name: String, port: UInt16, at now: Instant) -> [SocketAddress]? {
        guard let entry = entries.withLock({ $0[name] }), now - entry.time < Self.lifetime else { return nil }
        return entry.addresses.map { SocketAddress($0.address, port: port) }
    }
}
