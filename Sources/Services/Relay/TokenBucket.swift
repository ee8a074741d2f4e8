internal import TransportKit

/// So many at once, and so many more each second. Counts in whole billionths, so nothing is lost to rounding.
struct TokenBucket: Sendable {
    private static let scale: Int64 = 1_000_000_000

    private let capacity: Int64
    private let perSecond: Int64
    private var level: Int64
    private var last: Instant

    init(capacity: Int, perSecond: Int, now: Instant) {
        // Nine billion at once are as good as no limit.
        self.capacity = min(max(Int64(capacity), 0), .max / Self.scale / 2) * Self.scale
        self.perSecond = max(Int64(perSecond), 0)
        level = self.capacity
        last = now
    }

    /// Takes `count`, if so many are there.
    mutating func take(_ count: Int, now: Instant) -> Bool {
        if now > last {
            let (gained, overflow) = (now - last).clampedNanoseconds.multipliedReportingOverflow(by: perSecond)
            level = overflow || gained > capacity - level ? capacity : level + gained
            last = now
        }
        let (cost, overflow) = Int64(count).multipliedReportingOverflow(by: Self.scale)
        guard !overflow, cost <= level else { return false }
        level -= cost
        return true
    }
}
