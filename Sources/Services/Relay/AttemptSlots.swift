internal import RelayCarrier
internal import TransportKit

/// How often addresses have tried to join in the present window, without keeping any of them: each falls into a slot under a
/// key that is drawn anew for every window (part 2.1).
struct AttemptSlots: Sendable {
    private let limit: Int
    private let window: Duration
    private let drawKey: @Sendable () -> [UInt8]
    private var counts: [Int]
    private var key: [UInt8]
    private var end: Instant?

    /// - Parameter drawKey: 32 random bytes.
    init(_ limits: RelayLimits, drawKey: @escaping @Sendable () -> [UInt8]) {
        limit = limits.attempts
        window = limits.attemptWindow
        self.drawKey = drawKey
        counts = Array(repeating: 0, count: max(limits.attemptSlots, 1))
        key = drawKey()
    }

    /// Counts an attempt.
    ///
    /// - Returns: whether it may go on.
    mutating func attempt(from address: String, now: Instant) -> Bool {
        if end.map({ now >= $0 }) ?? true {
            for index in counts.indices { counts[index] = 0 }
            key = drawKey()
            end = now + window
        }
        let slot = slot(of: address)
        guard counts[slot] < limit else { return false }
        counts[slot] += 1
        return true
    }

    func slot(of address: String) -> Int {
        Int(RelayHash.number(of: address, key: key) % UInt64(counts.count))
    }
}
