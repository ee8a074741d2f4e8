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

extension ClockGap {
    /// Looks at the clocks until the task is cancelled.
    ///
    /// - Parameters:
    ///   - time: the clock that counts suspended time, and waits.
    ///   - awake: the clock that does not.
    ///   - wake: called for every gap. However long it takes, the next look is in time, so that it is not mistaken for one
    ///     that came late.
    package static func watch(
        _ time: any TimeSource, awake: @Sendable () -> Duration,
        wake: @escaping @Sendable (WakeRule.Reason) async -> Void
    ) async {
        var gap = ClockGap(boot: time.now(), awake: awake())
        await withDiscardingTaskGroup { group in
            while (try? await time.sleep(until: gap.planned)) != nil {
                guard let reason = gap.see(boot: time.now(), awake: awake()) else { continue }
                group.addTask { await wake(reason) }
            }
        }
    }
}
