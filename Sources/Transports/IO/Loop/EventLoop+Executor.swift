extension EventLoop: SerialExecutor, TaskExecutor {
    /// Takes a job of the Swift runtime. On the loop's own thread that costs neither a system call nor a lock.
    public func enqueue(_ job: consuming ExecutorJob) {
        enqueue(.job(UnownedJob(job)))
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
