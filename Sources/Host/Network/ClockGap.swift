package import TransportKit

/// Notices from the clocks that the machine was suspended, or that the program did not run (R60). A pure value.
package struct ClockGap: Sendable {
    /// How often to look.
    package static let interval = Duration.seconds(5)
    /// A suspension of less than this is let pass: no path is lost in it.
    private static let shortestSleep = Duration.seconds(2)
    /// So late is no timer of a program that runs (R60).
    private static let lateness = Duration.seconds(10)

    private var boot: Instant
    private var awake: Duration
    /// When the next look is planned.
    package private(set) var planned: Instant

    /// Starts to look.
    ///
    /// - Parameters:
    ///   - boot: the clock that counts suspended time.
    ///   - awake: the clock that does not.
    package init(boot: Instant, awake: Duration) {
        self.boot = boot
        self.awake = awake
        planned = boot + Self.interval
    }

    /// Looks again.
    package mutating func see(boot: Instant, awake: Duration) -> WakeRule.Reason? {
        let slept = (boot - self.boot) - (awake - self.awake)
        let late = boot - planned
        (self.boot, self.awake, planned) = (boot, awake, boot + Self.interval)
        if slept >= Self.shortestSleep { return .slept(slept) }
        return late > Self.lateness ? .stoodStill(late) : nil
    }
}
