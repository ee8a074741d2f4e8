package import TransportKit

/// Tries addresses, staggered, and returns what the first success made (``StaggeredDial``).
///
/// - Parameters:
///   - attempt: tries one address; it must end soon after its task is cancelled.
///   - discard: gets what a loser made in the same moment, to close it.
/// - Throws: the failure where there was one address; otherwise the code of the first failure and what all of them said.
///   ``/TransportKit/TransportError/Code/cancelled`` if the task was cancelled.
package func dialStaggered<Value: Sendable>(
    _ addresses: [SocketAddress], time: any TimeSource, stagger: Duration = StaggeredDial.usualStagger,
    limit: Int = StaggeredDial.usualLimit, rounds: Int = 1,
    attempt: @escaping @Sendable (SocketAddress) async throws(TransportError) -> Value,
    discard: @escaping @Sendable (Value) async -> Void = { _ in }
) async throws(TransportError) -> Value {
    typealias Outcome = Result<Value, TransportError>
    let result = await withTaskGroup(of: DialEvent<Value>.self, returning: Outcome.self) { group in
        var dial = StaggeredDial(count: addresses.count, stagger: stagger, limit: limit, rounds: rounds)
        var failures: [TransportError] = []
        var made: [Int: Value] = [:]
        var winner: Value?
        var actions = dial.begin(now: time.now())
        while true {
            for action in actions {
                switch action {
                case .start(let index):
                    let address = addresses[dial.address(of: index)]
                    group.addTask {
                        do throws(TransportError) {
                            return .succeeded(index, try await attempt(address))
                        } catch {
                            return .failed(index, error)
                        }
                    }
                case .arm(let instant):
                    group.addTask {
                        try? await time.sleep(until: instant)
                        return .timeout
                    }
                case .win(let index):
                    winner = made.removeValue(forKey: index)
                    group.cancelAll()
                case .discard(let index):
                    if let loser = made.removeValue(forKey: index) { await discard(loser) }
                case .fail:
                    group.cancelAll()
                }
            }
            guard let event = await group.next() else { break }
            switch event {
            case .succeeded(let index, let value):
                made[index] = value
                actions = dial.succeeded(index)
            case .failed(let index, let error):
                failures.append(error)
                // A cancelled dial must not go on to the next address.
                actions = Task.isCancelled ? [] : dial.failed(index, now: time.now())
            case .timeout:
                actions = Task.isCancelled ? [] : dial.timeout(now: time.now())
            }
        }
        if let winner { return .success(winner) }
        return .failure(
            Task.isCancelled ? TransportError(.cancelled, "connecting was cancelled") : combined(failures))
    }
    return try result.get()
}

private enum DialEvent<Value: Sendable>: Sendable {
    case succeeded(Int, Value)
    case failed(Int, TransportError)
    case timeout
}

private func combined(_ failures: [TransportError]) -> TransportError {
    guard let first = failures.first else { return TransportError(.nameNotFound, "there is no address to connect to") }
    var messages: [String] = []
    for failure in failures where !messages.contains(failure.message) { messages.append(failure.message) }
    return TransportError(first.code, messages.joined(separator: "; "), number: first.number)
}
