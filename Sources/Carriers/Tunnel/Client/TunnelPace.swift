internal import TransportKit

/// When the next session may begin after one that was ended by the other end (R81, R82).
///
/// An end says nothing about its cause, and a session that was replaced must not replace its successor in a loop: only one
/// that has carried for a while is followed by another at once. No clock and no randomness of its own.
struct TunnelPace {
    private var backoff: Backoff
    /// Before it no session begins; nil where one may at once.
    private(set) var until: Instant?
    /// Why that is so.
    private(set) var reason: Close?

    init(_ backoff: Backoff) {
        self.backoff = backoff
    }

    /// How many sessions have ended early since one last carried for long.
    var attempts: Int { backoff.attempts }

    /// The other end has ended a session, or the link under it.
    ///
    /// - Parameters:
    ///   - close: how.
    ///   - carried: how long it had carried: from the first message that came on it.
    ///   - random: from 0 up to, but not including, 1.
    mutating func ended(_ close: Close, afterCarrying carried: Duration, now: Instant, random: () -> Double) {
        let wait = backoff.ended(after: carried, fraction: random())
        reason = close
        // Of several that end together the last wait counts, never a shorter one than before.
        until = wait == .zero ? nil : max(until ?? .zero, now + wait)
    }

    /// The network is back or has changed.
    mutating func woken() {
        backoff.reset()
        until = nil
    }
}
