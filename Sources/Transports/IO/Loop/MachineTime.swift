internal import CLinux
internal import TransportKit

/// The machine's clocks without a loop, for the few waits that belong to none.
struct MachineTime: TimeSource {
    func now() -> Instant { Instant(nanoseconds: tk_boottime()) }

    func wallNow() -> WallTime { WallTime(seconds: tk_walltime()) }

    func sleep(until deadline: Instant) async throws(CancellationError) {
        do {
            let left = deadline - now()
            if left > .zero { try await Task.sleep(for: left) }
        } catch {
            throw CancellationError()
        }
    }
}
