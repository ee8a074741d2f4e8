internal import Synchronization

/// Time that stands still until it is moved by hand.
///
/// `advance(by:)` wakes every sleeper whose deadline it passes, in the order of their deadlines. Wall time moves along;
/// `setWall(_:)` makes it jump without waking anybody, as a corrected clock does.
public final class ManualTime: TimeSource {
    private struct Sleeper {
        let id: UInt64
        let deadline: Instant
        let signal: Signal
    }

    private struct State {
        var now: Instant
        var wall: WallTime
        var wallFraction: Duration = .zero
        var nextID: UInt64 = 0
        var sleepers: [Sleeper] = []
    }

    private let state: Mutex<State>

    /// Makes a clock that shows the given times.
    public init(now: Instant = .zero, wall: WallTime = WallTime(seconds: 1_800_000_000)) {
        state = Mutex(State(now: now, wall: wall))
    }

    /// The instant that was last set.
    public func now() -> Instant { state.withLock { $0.now } }

    /// The wall time that was last set.
    public func wallNow() -> WallTime { state.withLock { $0.wall } }

    /// The deadline of the sleeper that wakes next, if anybody sleeps.
    public var nextDeadline: Instant? { state.withLock { $0.sleepers.map(\.deadline).min() } }

    /// Waits until the clock has been moved to `deadline`.
    ///
    /// - Throws: `CancellationError` as soon as the waiting task is cancelled.
    public func sleep(until deadline: Instant) async throws(CancellationError) {
        let signal = Signal()
        let id: UInt64? = state.withLock { state in
            guard deadline > state.now else { return nil }
            state.nextID += 1
            state.sleepers.append(Sleeper(id: state.nextID, deadline: deadline, signal: signal))
            return state.nextID
        }
        guard let id else {
            if Task.isCancelled { throw CancellationError() }
            return
        }
        let woken = await signal.wait()
        if !woken {
            state.withLock { state in state.sleepers.removeAll { $0.id == id } }
            throw CancellationError()
        }
    }

    /// Moves both clocks forward and wakes whoever waited for that.
    public func advance(by duration: Duration) {
        let due = state.withLock { state -> [Sleeper] in
            state.now = state.now + duration
            let elapsed = state.wallFraction + duration
            state.wall = state.wall + elapsed
            state.wallFraction = elapsed - .seconds(elapsed.components.seconds)
            let due = state.sleepers.filter { $0.deadline <= state.now }
            state.sleepers.removeAll { $0.deadline <= state.now }
            return due
        }
        for sleeper in due.sorted(by: { $0.deadline < $1.deadline }) { sleeper.signal.signal() }
    }

    /// Makes the wall clock jump.
    public func setWall(_ wall: WallTime) {
        state.withLock { $0.wall = wall }
    }
}
