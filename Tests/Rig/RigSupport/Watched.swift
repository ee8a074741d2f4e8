internal import Dispatch
internal import Glibc
internal import Synchronization

/// A value that tasks wait for: each change is shown to those who wait.
package final class Watched<Value: Sendable>: Sendable {
    private struct Waiter {
        /// Takes the value if it is what is waited for, or says that it is not.
        var offer: (Value) -> Bool
        var giveUp: (any Error) -> Void
    }

    private struct State {
        var value: Value
        var waiters: [UInt64: Waiter] = [:]
        var lastID: UInt64 = 0
    }

    private let state: Mutex<State>

    package init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    package var value: Value { state.withLock { $0.value } }

    package func change(_ body: (inout Value) -> Void) {
        state.withLock { state in
            body(&state.value)
            for (id, waiter) in state.waiters where waiter.offer(state.value) { state.waiters[id] = nil }
        }
    }

    /// Waits until `look` finds something in the value.
    ///
    /// - Parameter what: completes "waited in vain for …", for whoever reads the failure.
    package func wait<Found: Sendable>(
        within limit: Duration, for what: @escaping @Sendable @autoclosure () -> String,
        _ look: @escaping @Sendable (Value) -> Found?
    ) async throws -> Found {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                state.withLock { state in
                    if let found = look(state.value) { return continuation.resume(returning: found) }
                    if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                    state.waiters[id] = Waiter(
                        offer: { value in
                            guard let found = look(value) else { return false }
                            continuation.resume(returning: found)
                            return true
                        }, giveUp: { continuation.resume(throwing: $0) })
                }
                DispatchQueue.global().asyncAfter(deadline: .now() + limit.seconds) {
                    self.end(id, RigFailure("waited \(limit) in vain for \(what())"))
                }
            }
        } onCancel: {
            end(id, CancellationError())
        }
    }

    private func end(_ id: UInt64, _ error: @autoclosure () -> any Error) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
        if let waiter { waiter.giveUp(error()) }
    }
}

extension Duration {
    package var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
    package var milliseconds: Double { seconds * 1e3 }
    /// For C functions that wait.
    var wholeMilliseconds: Int32 { Int32(clamping: Int64((seconds * 1e3).rounded(.up))) }
}

/// Asks again and again, for what nothing tells about, until the answer is there.
package func eventually<Found>(
    _ what: String, within limit: Duration, every pause: Duration = .milliseconds(20),
    _ look: () async throws -> Found?
) async throws -> Found {
    let deadline = ContinuousClock.now + limit
    while true {
        if let found = try await look() { return found }
        guard ContinuousClock.now < deadline else { throw RigFailure("waited \(limit) in vain for \(what)") }
        try await Task.sleep(for: pause)
    }
}

/// Lets a thread of the test's own rest; tasks wait for conditions instead.
package func pause(_ duration: Duration) { usleep(UInt32(max(0, duration.seconds * 1e6))) }

/// Runs what blocks on a thread of its own, away from those that tasks share.
package func blocking<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue(label: "rig").async {
            continuation.resume(with: Swift.Result { try body() })
        }
    }
}
