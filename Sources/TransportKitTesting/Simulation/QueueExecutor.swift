internal import Dispatch

/// A serial executor on threads of the machine, for transports and carriers that are tested in real time.
///
/// Hand it where a loop would be: actors run on it through `unownedExecutor`, tasks through `Task(executorPreference:)`.
/// ``ManualExecutor`` is the one for simulated time.
public final class QueueExecutor: SerialExecutor, TaskExecutor {
    private let queue = DispatchQueue(label: "transportkit.testing")
    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    /// Makes an executor with nothing to do.
    public init() {
        queue.setSpecific(key: Self.key, value: ObjectIdentifier(self))
    }

    /// Runs a job once those before it have run. Any thread may call it.
    ///
    /// - Parameter job: what to run.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// Whether the caller is one of its jobs.
    public func isIsolatingCurrentContext() -> Bool? {
        DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self)
    }

    /// Traps unless the caller is one of its jobs.
    public func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "not on the queue")
    }
}
