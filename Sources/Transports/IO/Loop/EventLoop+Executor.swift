extension EventLoop: SerialExecutor, TaskExecutor {
    /// Takes a job of an actor. On the loop's own thread that costs neither a system call nor a lock.
    public func enqueue(_ job: consuming ExecutorJob) {
        enqueue(.actorJob(UnownedJob(job)))
    }

    /// Takes a job of a task that prefers the loop.
    ///
    /// It is told apart from an actor's, because the runtime has to be told: to a task outside of every actor a thread
    /// that runs as one is the wrong place, and it would be queued once more before it goes on.
    @_implements(TaskExecutor,enqueue(_:))
    public func enqueueTaskJob(_ job: consuming ExecutorJob) {
        enqueue(.taskJob(UnownedJob(job)))
    }

    /// The form in which an actor names the loop as its executor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    /// Traps unless the caller runs on the loop.
    public func checkIsolated() {
        precondition(isCurrent, "not on the loop \(name)")
    }

    /// Whether the caller runs on the loop.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }
}
