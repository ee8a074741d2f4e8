/// A point on the clock that counts from boot and goes on while the machine is suspended (`CLOCK_BOOTTIME`).
///
/// Lifetimes, deadlines and timeouts use it. It means nothing on another machine or after a restart: what is stored
/// uses ``WallTime``.
public struct Instant: Sendable, Hashable, Comparable {
    /// Nanoseconds since boot.
    public var nanoseconds: UInt64

    /// Makes the instant `nanoseconds` after boot.
    public init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// The start of the clock; simulated time starts here.
    public static let zero = Instant(nanoseconds: 0)

    /// Whether `left` comes before `right`.
    public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant `duration` later; it stays at the ends of the clock instead of wrapping.
    public static func + (instant: Instant, duration: Duration) -> Instant {
        let step = duration.clampedNanoseconds
        let (sum, overflow) =
            step >= 0
            ? instant.nanoseconds.addingReportingOverflow(UInt64(step))
            : instant.nanoseconds.subtractingReportingOverflow(step.magnitude)
        if overflow { return Instant(nanoseconds: step >= 0 ? .max : 0) }
        return Instant(nanoseconds: sum)
    }

    /// The time from `right` to `left`; negative where `right` is later.
    public static func - (left: Instant, right: Instant) -> Duration {
        let forward = left >= right
        let distance = forward ? left.nanoseconds - right.nanoseconds : right.nanoseconds - left.nanoseconds
        let clamped = Int64(Swift.min(distance, UInt64(Int64.max)))
        return .nanoseconds(forward ? clamped : -clamped)
    }
}

extension Duration {
    /// The duration in nanoseconds, held at the ends of `Int64` (292 years) where it does not fit.
    public var clampedNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carried) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        if overflow || carried { return seconds < 0 ? .min : .max }
        return sum
    }

    /// The duration in milliseconds, with its fraction.
    public var inMilliseconds: Double { Double(clampedNanoseconds) / 1_000_000 }

    /// The duration for a message to people, such as `250 ms`, `30 s`, `10 min` or `24 h`.
    package var inWords: String {
        let milliseconds = clampedNanoseconds / 1_000_000
        guard milliseconds % 1000 == 0 else { return "\(milliseconds) ms" }
        let seconds = milliseconds / 1000
        if seconds >= 3600, seconds % 3600 == 0 { return "\(seconds / 3600) h" }
        if seconds >= 120, seconds % 60 == 0 { return "\(seconds / 60) min" }
        return "\(seconds) s"
    }
}

/// A point on the wall clock, for what is stored. It can jump: check it when it is read.
public struct WallTime: Sendable, Hashable, Comparable {
    /// Seconds since 1970-01-01 00:00 UTC.
    public var seconds: Int64

    /// Makes the point `seconds` after 1970-01-01 00:00 UTC.
    public init(seconds: Int64) {
        self.seconds = seconds
    }

    /// Whether `left` comes before `right`.
    public static func < (left: WallTime, right: WallTime) -> Bool { left.seconds < right.seconds }

    /// The point `duration` later, to the second; it stays at the ends of the clock instead of wrapping.
    public static func + (time: WallTime, duration: Duration) -> WallTime {
        let step = duration.components.seconds
        let (sum, overflow) = time.seconds.addingReportingOverflow(step)
        return WallTime(seconds: overflow ? (step < 0 ? .min : .max) : sum)
    }
}
