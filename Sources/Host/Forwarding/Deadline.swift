internal import TransportKit

/// Runs something for a limited time.
enum Deadline {
    /// The time was over first.
    struct Passed: Error {}

    /// Returns what `body` returns, or throws ``Passed`` after `limit`, once `body` has noticed that it was cancelled. Where
    /// the calling task is cancelled before, it throws what `body` makes of that, or `CancellationError`.
    static func run<Result: Sendable>(
        _ limit: Duration, time: any TimeSource, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await time.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            guard let first = try await group.next(), let result = first else { throw Passed() }
            return result
        }
    }
}
