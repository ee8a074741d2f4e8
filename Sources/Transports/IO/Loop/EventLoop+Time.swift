internal import CLinux
internal import Synchronization
public import TransportKit

extension EventLoop: TimeSource {
    /// The current instant, time in suspend included.
    public func now() -> Instant { Instant(nanoseconds: tk_boottime()) }

    /// How long the machine has been awake since it was started: unlike ``now()`` it stands still in suspend.
    package func timeAwake() -> Duration { .nanoseconds(Int64(clamping: tk_awaketime())) }

    /// The current time of the wall clock.
    public func wallNow() -> WallTime { WallTime(seconds: tk_walltime()) }

    /// Returns once `now()` has reached `deadline`.
    ///
    /// - Throws: `CancellationError` as soon as the waiting task is cancelled or the loop is shut down.
    public func sleep(until deadline: Instant) async throws(CancellationError) {
        guard !Task.isCancelled else { throw CancellationError() }
        guard deadline > now() else { return }
        let sleep = Sleep()
        execute { self.begin(sleep, until: deadline) }
        let woken = await sleep.signal.wait()
        guard woken else {
            execute { sleep.timer?.disarm() }
            throw CancellationError()
        }
        if sleep.wasShutDown.load(ordering: .acquiring) { throw CancellationError() }
    }

    private func begin(_ sleep: Sleep, until deadline: Instant) {
        let timer = makeTimer { sleep.signal.signal() }
        timer.dropped = {
            sleep.wasShutDown.store(true, ordering: .releasing)
            sleep.signal.signal()
        }
        sleep.timer = timer
        timer.arm(at: deadline)
    }

    /// Sendable is sound: only jobs of the loop touch `timer`.
    private final class Sleep: @unchecked Sendable {
        let signal = Signal()
        let wasShutDown = Atomic(false)
        weak var timer: LoopTimer?
    }
}
