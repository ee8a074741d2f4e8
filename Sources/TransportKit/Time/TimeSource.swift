/// Where time comes from: the machine's clocks in the host, simulated time in tests.
///
/// Any thread may call it. An event loop conforms to it (`EventLoop`), so that a waiting task wakes on its own loop;
/// ``ManualTime`` is the in-process implementation.
public protocol TimeSource: Sendable {
    /// The current instant, time in suspend included.
    func now() -> Instant

    /// The current time of the wall clock.
    func wallNow() -> WallTime

    /// Returns once `now()` has reached `deadline`; at once if it already has.
    ///
    /// - Throws: `CancellationError` as soon as the waiting task is cancelled.
    func sleep(until deadline: Instant) async throws(CancellationError)
}

extension TimeSource {
    /// Returns after `duration`.
    ///
    /// - Throws: `CancellationError` as soon as the waiting task is cancelled.
    public func sleep(for duration: Duration) async throws(CancellationError) {
        try await sleep(until: now() + duration)
    }
}
