internal import Glibc
public import TransportKit

/// The machine's own clocks, for in-process transports that are tested in real time.
public struct MachineTime: TimeSource {
    /// Makes the source.
    public init() {}

    /// The clock that counts from boot, time in suspend included.
    public func now() -> Instant {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Instant(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    /// The wall clock.
    public func wallNow() -> WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(seconds: Int64(time.tv_sec))
    }

    /// Returns once `now()` has reached `deadline`.
    public func sleep(until deadline: Instant) async throws(CancellationError) {
        do {
            try await Task.sleep(for: deadline - now(), clock: .continuous)
        } catch {
            throw CancellationError()
        }
    }
}
