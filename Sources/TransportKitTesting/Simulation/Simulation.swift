internal import Synchronization
public import TransportKit

/// Simulated time and one executor: runs asynchronous code to its end without waiting and without threads.
///
/// ```swift
/// let simulation = Simulation()
/// let network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
/// let socket = try simulation.run { try await MemoryTransport(network: network).dial(url, options: DialOptions()) }
/// #expect(simulation.time.now() == .zero + .milliseconds(40))
/// ```
///
/// What runs on it must wait only for things of the simulation: other tasks on its executor and its clock. Child tasks
/// and the tasks of actors on the executor stay on it by themselves; an unstructured `Task { }` outside an actor does
/// not, so start it with ``start(_:)``.
public final class Simulation: Sendable {
    /// The simulated clock.
    public let time: ManualTime
    /// Where everything runs.
    public let executor: ManualExecutor

    /// Makes a simulation at the start of its clock.
    public init(time: ManualTime = ManualTime(), executor: ManualExecutor = ManualExecutor()) {
        self.time = time
        self.executor = executor
    }

    /// Everything came to rest before the end.
    public struct Stuck: Error, CustomStringConvertible {
        /// When.
        public let instant: Instant
        /// What was waited for.
        public let description: String
    }

    /// Runs `body`, and lets time pass whenever nothing else is left to do, until `body` has returned.
    ///
    /// - Parameters:
    ///   - limit: how much time may pass.
    ///   - body: what to run; it waits for nothing outside the simulation.
    /// - Throws: what `body` throws; ``Stuck`` where nothing is left to do, or the time is over, and it still waits.
    @discardableResult
    public func run<Result: Sendable>(
        limit: Duration = .seconds(86_400 * 366), _ body: @escaping @Sendable () async throws -> Result
    ) throws -> Result {
        let outcome = Outcome<Result>()
        let task = start {
            do {
                outcome.set(.success(try await body()))
            } catch {
                outcome.set(.failure(error))
            }
        }
        do {
            try run(until: { outcome.value != nil }, limit: limit, waitingFor: "the body of `run`")
        } catch {
            task.cancel()
            executor.drain()
            throw error
        }
        guard let value = outcome.value else { preconditionFailure("the body has returned") }
        return try value.get()
    }

    /// Starts `body` beside whatever else runs; it moves on during the next ``run(limit:_:)`` or ``drain()``.
    @discardableResult
    public func start<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) -> Task<Result, Never> {
        Task(executorPreference: executor) { await body() }
    }

    /// Runs until `condition` holds, and lets time pass whenever nothing else is left to do.
    public func run(
        until condition: () -> Bool, limit: Duration = .seconds(86_400 * 366),
        waitingFor what: String = "the condition"
    ) throws(Stuck) {
        let end = time.now() + limit
        while true {
            executor.drain()
            if condition() { return }
            guard let next = time.nextDeadline else {
                throw Stuck(instant: time.now(), description: "nothing is left to do, and \(what) still waits")
            }
            guard next <= end else {
                throw Stuck(instant: time.now(), description: "\(limit) have passed, and \(what) still waits")
            }
            time.advance(by: next - time.now())
        }
    }

    /// Lets `duration` pass, one deadline after the other, and everything happen that falls into it.
    public func advance(by duration: Duration) {
        let end = time.now() + duration
        executor.drain()
        while let next = time.nextDeadline, next <= end {
            time.advance(by: next - time.now())
            executor.drain()
        }
        time.advance(by: end - time.now())
        executor.drain()
    }

    /// Runs whatever can run without time passing.
    public func drain() {
        executor.drain()
    }
}

/// The result of a body, once it has one.
private final class Outcome<Value: Sendable>: Sendable {
    private let stored = Mutex<Result<Value, any Error>?>(nil)

    var value: Result<Value, any Error>? { stored.withLock { $0 } }

    func set(_ result: Result<Value, any Error>) { stored.withLock { $0 = result } }
}
