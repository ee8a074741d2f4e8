internal import Glibc
internal import Synchronization

/// An executor without a thread: jobs wait until a test runs them, one after the other, in the order they came.
///
/// Actors run on it through `unownedExecutor`, tasks through `Task(executorPreference:)`. Together with `ManualTime`
/// nothing is left to chance: the same test takes the same steps every time.
public final class ManualExecutor: SerialExecutor, TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var drainer: pthread_t?
    }

    private let state = Mutex(State())

    /// Makes an executor with nothing to do.
    public init() {}

    /// Whether a job waits.
    public var hasJobs: Bool { state.withLock { !$0.jobs.isEmpty } }

    /// Keeps a job for ``drain()``. Any thread may call it.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// Runs every waiting job, and those that they enqueue, until none is left.
    ///
    /// - Returns: how many jobs ran.
    @discardableResult
    public func drain() -> Int {
        let thread = Self.currentThread()
        let isFree = state.withLock { state in
            guard state.drainer == nil else { return false }
            state.drainer = thread
            return true
        }
        precondition(isFree, "one call drains at a time, and a job may not drain its own executor")
        defer { state.withLock { $0.drainer = nil } }
        var count = 0
        while true {
            let jobs = state.withLock { state in
                defer { state.jobs = [] }
                return state.jobs
            }
            if jobs.isEmpty { return count }
            for job in jobs {
                job.runSynchronously(on: asUnownedSerialExecutor())
                count += 1
            }
        }
    }

    /// Traps unless the caller is one of the executor's own jobs.
    public func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "not on the manual executor")
    }

    /// Whether the caller is one of the executor's own jobs.
    public func isIsolatingCurrentContext() -> Bool? {
        let thread = Self.currentThread()
        return state.withLock { state in state.drainer.map { pthread_equal($0, thread) != 0 } ?? false }
    }

    /// Never inlined: the C library declares `pthread_self` constant, so a caller that suspends could keep an old answer.
    @inline(never)
    private static func currentThread() -> pthread_t { pthread_self() }
}
