import Dispatch

/// A serial executor over a dispatch queue, for tests in real time.
final class QueueExecutor: SerialExecutor, TaskExecutor {
    private let queue = DispatchQueue(label: "carriers")
    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    init() {
        queue.setSpecific(key: Self.key, value: ObjectIdentifier(self))
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func isIsolatingCurrentContext() -> Bool? {
        DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self)
    }

    func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "not on the queue")
    }
}
