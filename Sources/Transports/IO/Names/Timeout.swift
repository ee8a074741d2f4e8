package import TransportKit

/// Runs `work` and gives it up after `timeout`.
///
/// - Parameters:
///   - work: must end soon after its task is cancelled.
///   - discard: gets a result that came too late.
/// - Throws: what `work` throws, ``/TransportKit/TransportError/Code/timedOut``, or ``/TransportKit/TransportError/Code/cancelled``.
package func withTimeout<Value: Sendable>(
    _ timeout: Duration, time: any TimeSource, doing: String,
    _ work: @escaping @Sendable () async throws(TransportError) -> Value,
    discard: @escaping @Sendable (Value) async -> Void = { _ in }
) async throws(TransportError) -> Value {
    typealias Outcome = Result<Value, TransportError>
    let deadline = time.now() + timeout
    let result = await withTaskGroup(of: Outcome?.self, returning: Outcome.self) { group in
        group.addTask {
            do throws(TransportError) {
                return .success(try await work())
            } catch {
                return .failure(error)
            }
        }
        group.addTask {
            try? await time.sleep(until: deadline)
            return nil
        }
        let first = await group.next() ?? nil
        group.cancelAll()
        if let first { return first }
        if case .success(let late)?? = await group.next() { await discard(late) }
        return .failure(
            Task.isCancelled
                ? TransportError(.cancelled, "\(doing) was cancelled")
                : TransportError(.timedOut, "\(doing): no answer came in time"))
    }
    return try result.get()
}
