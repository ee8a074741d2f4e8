internal import Synchronization
package import TransportKit

/// Time limits of one length for many things at once.
///
/// A limit costs an entry in a table and no task or timer of its own; one task, which runs ``run()``, looks after all of
/// them. What is limited is told by its `fire`, which must make it end.
package final class Timeouts: Sendable {
    /// The time was over first.
    package struct Passed: Error {}

    private struct Entry {
        var deadline: Instant
        var fire: @Sendable () async -> Void
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        /// Ids count up, and so do deadlines; none below this one is left.
        var oldest: UInt64 = 0
        var next: UInt64 = 0

        /// The entry that is due first.
        mutating func first() -> (id: UInt64, entry: Entry)? {
            while oldest < next {
                if let entry = entries[oldest] { return (oldest, entry) }
                oldest += 1
            }
            return nil
        }
    }

    /// How long each has.
    package let limit: Duration
    private let state = Mutex(State())
    private let time: any TimeSource
    private let added = Signal()

    package init(limit: Duration, time: any TimeSource) {
        self.limit = limit
        self.time = time
    }

    /// Runs `body`, and `fire` if it takes longer than the limit.
    ///
    /// - Throws: what `body` throws; ``Passed`` where `fire` came first, whatever `body` made of it.
    package func run<Result>(
        _ body: () async throws -> Result, fire: @escaping @Sendable () async -> Void
    ) async throws -> Result {
        let id = add(fire)
        do {
            let result = try await body()
            guard remove(id) else { throw Passed() }
            return result
        } catch {
            guard remove(id) else { throw Passed() }
            throw error
        }
    }

    /// How many are being limited.
    package var count: Int { state.withLock { $0.entries.count } }

    /// Looks after the limits until the task is cancelled.
    package func run() async {
        while !Task.isCancelled {
            guard let deadline = state.withLock({ $0.first()?.entry.deadline }) else {
                _ = await added.wait()
                continue
            }
            try? await time.sleep(until: deadline)
            for fire in takeDue() { await fire() }
        }
    }

    private func takeDue() -> [@Sendable () async -> Void] {
        let now = time.now()
        return state.withLock { state in
            var due: [@Sendable () async -> Void] = []
            while let (id, entry) = state.first(), entry.deadline <= now {
                state.entries[id] = nil
                due.append(entry.fire)
            }
            return due
        }
    }

    private func add(_ fire: @escaping @Sendable () async -> Void) -> UInt64 {
        let deadline = time.now() + limit
        let (id, isOnly) = state.withLock { state in
            let id = state.next
            state.next += 1
            state.entries[id] = Entry(deadline: deadline, fire: fire)
            return (id, state.entries.count == 1)
        }
        if isOnly { added.signal() }
        return id
    }

    private func remove(_ id: UInt64) -> Bool {
        state.withLock { $0.entries.removeValue(forKey: id) != nil }
    }
}
