package import TransportKit

/// A timer of an event loop, confined to its thread. It fires once each time it is armed.
///
/// Arming it again moves it. Moving it to a later instant and disarming it are cheap: the loop notices when it would
/// have fired. The loop keeps an armed timer; one that is disarmed lives as long as its owner keeps it.
package final class LoopTimer {
    /// When it fires; nil while it is not armed.
    package private(set) var deadline: Instant?

    /// Called instead of `fire` if the loop is shut down while the timer is armed, and if it is armed later than that.
    package var dropped: (() -> Void)?
    /// Whether the loop's heap holds an entry for it, and for when; that may be earlier than `deadline`.
    var queued: Instant?
    private let core: LoopCore
    private let fire: () -> Void

    init(core: LoopCore, fire: @escaping () -> Void) {
        self.core = core
        self.fire = fire
    }

    /// Makes the timer fire at `deadline`, and not when it was to fire before. On the loop only.
    package func arm(at deadline: Instant) {
        guard !core.isStopped else {
            dropped?()
            return
        }
        self.deadline = deadline
        if let queued, queued <= deadline { return }
        queued = deadline
        core.timers.insert(self, at: deadline)
    }

    /// Keeps the timer from firing. On the loop only.
    package func disarm() {
        deadline = nil
    }

    /// The heap's entry for `instant` has come due.
    func due(entry instant: Instant) {
        // An entry for another instant was left behind when the timer was moved forward.
        guard queued == instant else { return }
        queued = nil
        guard let deadline else { return }
        guard deadline == instant else {
            // It was moved later. Even if that has passed too, its turn comes after those that were due before.
            queued = deadline
            core.timers.insert(self, at: deadline)
            return
        }
        self.deadline = nil
        fire()
    }

    /// The loop has stopped.
    func drop() {
        guard deadline != nil else { return }
        deadline = nil
        queued = nil
        dropped?()
    }
}
