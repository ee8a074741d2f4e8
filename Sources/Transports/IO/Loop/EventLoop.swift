internal import CLinux
internal import Synchronization
public import TransportKit

/// One thread that waits for descriptors and timers and runs jobs: the owner of sockets and of everything above them.
///
/// It is a serial executor, so an actor that names it as its executor shares the thread with its sockets, and it is a
/// task executor (`Task(executorPreference: loop)`), so that a caller can run there too: a call between two actors of one
/// loop costs tens of nanoseconds, one that crosses threads 5 to 10 µs.
///
/// The thread runs from `init` until ``shutdown()``, which must be called; a loop that is only dropped keeps running.
/// Turn by turn it serves the descriptors that are ready, fires timers, runs jobs, and calls what asked for the end of
/// the turn. Nothing on it may block.
public final class EventLoop: Sendable {
    /// The name of the loop and of its thread.
    public let name: String

    private struct Mail {
        enum State {
            case running
            case stopped
            /// The thread is gone, and another one runs what was handed over since.
            case draining
        }

        var work: [Work] = []
        var state = State.running
        var stopWaiters: [CheckedContinuation<Void, Never>] = []
    }

    /// What other threads hand over.
    private let mail = Guarded(Mail())
    /// Whether `mail` holds work, so that a turn without any takes no lock.
    private let hasMail = Atomic(false)
    /// Whether the thread waits in the kernel, or is about to: only then does handing over cost a system call.
    private let isAsleep = Atomic(false)
    private let wakeup: Int32

    private let core: LoopCore

    /// Starts a loop.
    ///
    /// - Throws: ``/TransportKit/TransportError/Code/resources`` or another error of the system if a descriptor or the thread cannot be
    ///   made.
    public init(name: String) throws(TransportError) {
        self.name = name
        wakeup = tk_eventfd()
        guard wakeup >= 0 else { throw TransportError(errno: -wakeup, doing: "starting the loop \(name)") }
        do {
            core = try LoopCore(name: name, wakeup: wakeup)
        } catch {
            tk_close(wakeup)
            throw error
        }
        let started = startThread { self.run() }
        guard started == 0 else { throw TransportError(errno: started, doing: "starting the loop \(name)") }
    }

    deinit { tk_close(wakeup) }

    /// Whether the caller runs on this loop's thread.
    public var isCurrent: Bool {
        unsafe tk_thread_mark() == UnsafeMutableRawPointer(Unmanaged.passUnretained(self).toOpaque())
    }

    /// Runs `work` on the loop, after what was handed over before. Any thread may call it.
    public func execute(_ work: @escaping @Sendable () -> Void) {
        enqueue(.closure(work))
    }

    /// Stops the loop and waits until its thread has ended.
    ///
    /// What is still open on it fails: its tasks are told that the loop was shut down, and sleeping ones wake as if
    /// cancelled. Jobs that arrive later still run, one at a time, so that no task hangs, but nothing waits for descriptors
    /// or time any more. It must not be called on the loop.
    public func shutdown() async {
        precondition(!isCurrent, "a loop cannot wait for its own end")
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isStopped = mail.withLock { mail in
                guard case .running = mail.state else { return true }
                mail.stopWaiters.append(continuation)
                return false
            }
            if isStopped {
                continuation.resume()
            } else {
                // The flag is the core's own, so setting it is work for the loop.
                execute { self.core.isStopping = true }
            }
        }
    }

    /// Runs `work` on the loop and returns what it returns: at once if the caller is on the loop already.
    package func run<Result: Sendable>(
        _ work: @escaping @Sendable () throws(TransportError) -> Result
    ) async throws(TransportError) -> Result {
        if isCurrent { return try work() }
        let result = await withCheckedContinuation { continuation in
            execute { continuation.resume(returning: Swift.Result(catching: work)) }
        }
        return try result.get()
    }

    // MARK: - For the loop's own thread

    /// Makes a timer that calls `fire` on the loop; it is not armed yet. On the loop only.
    package func makeTimer(_ fire: @escaping () -> Void) -> LoopTimer {
        assertCurrent()
        return LoopTimer(core: core, fire: fire)
    }

    /// Calls `handler` once, after the ready descriptors, timers and jobs of this turn and before the loop waits again:
    /// the place to send what has gathered. It is kept until then. On the loop only.
    package func atEndOfTurn(_ handler: any TurnEndHandler) {
        assertCurrent()
        core.endOfTurn.append(handler)
    }

    /// Watches a descriptor. On the loop only.
    ///
    /// The loop keeps `handler` until the registration is cancelled, which must happen before the descriptor is closed.
    package func register(
        _ descriptor: Int32, interest: Readiness, edgeTriggered: Bool = false, _ handler: any DescriptorHandler
    ) throws(TransportError) -> Registration {
        assertCurrent()
        return try core.register(descriptor, interest: interest, edgeTriggered: edgeTriggered, handler)
    }

    /// The room into which sockets of this loop receive datagrams, one at a time.
    var receiver: DatagramReceiver {
        assertCurrent()
        return core.receiver
    }

    func assertCurrent() {
        precondition(isCurrent, "only the loop's own thread may do this")
    }

    // MARK: - Handing over

    func enqueue(_ work: consuming Work) {
        if isCurrent {
            core.ready.append(work)
        } else {
            post(work)
        }
    }

    private func post(_ work: consuming Work) {
        // Once the work is handed over it may run, and let go of whatever else has held the loop.
        defer { withExtendedLifetime(self) {} }
        let work = work
        let mustDrain = mail.withLock { mail in
            mail.work.append(work)
            hasMail.store(true, ordering: .sequentiallyConsistent)
            guard case .stopped = mail.state else { return false }
            mail.state = .draining
            return true
        }
        if mustDrain {
            let started = startThread { self.drain() }
            precondition(started == 0, "no thread can be made")
        } else if isAsleep.load(ordering: .sequentiallyConsistent),
            isAsleep.exchange(false, ordering: .sequentiallyConsistent)
        {
            tk_eventfd_signal(wakeup)
        }
    }

    // MARK: - The thread

    private func startThread(_ body: @escaping @Sendable () -> Void) -> Int32 {
        TransportIO.startThread(named: name) { [self] in
            unsafe tk_set_thread_mark(Unmanaged.passUnretained(self).toOpaque())
            body()
            tk_set_thread_mark(nil)
        }
    }

    private func run() {
        while true {
            takeMail()
            core.runReady(on: self)
            core.finishTurn()
            if core.isStopping, core.ready.isEmpty { break }
            var mayWait = core.ready.isEmpty
            if mayWait {
                // Whoever hands work over from here on either is seen below or sees that it has to wake the loop.
                isAsleep.store(true, ordering: .sequentiallyConsistent)
                mayWait = !hasMail.load(ordering: .sequentiallyConsistent)
            }
            core.wait(mayBlock: mayWait) { isAsleep.store(false, ordering: .sequentiallyConsistent) }
        }
        core.stop()
        drain()
    }

    /// Runs what is left until nothing is; then the loop counts as stopped.
    private func drain() {
        while true {
            takeMail()
            core.runReady(on: self)
            core.finishTurn()
            guard core.ready.isEmpty else { continue }
            let waiters = mail.withLock { mail -> [CheckedContinuation<Void, Never>]? in
                guard mail.work.isEmpty else { return nil }
                mail.state = .stopped
                defer { mail.stopWaiters = [] }
                return mail.stopWaiters
            }
            guard let waiters else { continue }
            for waiter in waiters { waiter.resume() }
            return
        }
    }

    private func takeMail() {
        guard hasMail.load(ordering: .acquiring) else { return }
        mail.withLock { mail in
            core.ready.append(contentsOf: mail.work)
            mail.work.removeAll(keepingCapacity: true)
            hasMail.store(false, ordering: .sequentiallyConsistent)
        }
    }
}
