/// The last 16 sessions of a link that ended: what still comes for one of them is late, and no news.
package struct EndedSessions<Key: Hashable & Sendable>: Sendable {
    private static var limit: Int { 16 }

    private var keys: [Key] = []
    private var oldest = 0

    package init() {}

    package func contains(_ key: Key) -> Bool { keys.contains(key) }

    /// A session has ended; the oldest one is forgotten where there are more than 16.
    package mutating func insert(_ key: Key) {
        if keys.contains(key) { return }
        if keys.count < Self.limit {
            keys.append(key)
        } else {
            keys[oldest] = key
            oldest = (oldest + 1) % Self.limit
        }
    }
}
