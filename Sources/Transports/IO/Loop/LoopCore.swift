internal import CLinux
internal import TransportKit

/// Something a loop has to run.
enum Work {
    /// A job of an actor that belongs to the loop.
    case actorJob(UnownedJob)
    /// A job of a task that prefers the loop.
    case taskJob(UnownedJob)
    case closure(@Sendable () -> Void)
}

/// Whoever gathers something during a turn of the loop.
package protocol TurnEndHandler: AnyObject {
    /// The turn ends; called on the loop once for each time it was asked for.
    func turnEnds()
}

/// What belongs to a loop's thread alone: descriptors, timers, jobs that are ready.
///
/// Sendable is sound: only the loop's thread touches it, and every way in checks that. The thread that drains a stopped
/// loop runs after the loop's own has ended, and the lock of the loop's mail orders the two.
final class LoopCore: @unchecked Sendable {
    var ready: [Work] = []
    var endOfTurn: [any TurnEndHandler] = []
    var timers = TimerHeap()
    var isStopping = false
    private(set) var isStopped = false
    private(set) lazy var receiver = DatagramReceiver()

    private struct Slot {
        var handler: (any DescriptorHandler)?
        /// Counted up with each use, so that an event of the last one does not reach the next.
        var generation: UInt32
    }

    private let epoll: Int32
    private let alarm: Int32
    /// When `alarm` rings, if it has been set and has not rung.
    private var alarmInstant: Instant?
    private var slots: [Slot] = []
    private var freeSlots: [Int] = []
    private var batch: [Work] = []
    private var endingBatch: [any TurnEndHandler] = []
    private var events = Array(repeating: tk_event(), count: 256)

    /// The tokens of the loop's own descriptors, which need no handler.
    private static let ownTokens: UInt64 = .max - 1

    init(name: String, wakeup: Int32) throws(TransportError) {
        epoll = tk_epoll_create()
        alarm = tk_timerfd()
        // Edge-triggered, so that neither descriptor ever has to be read.
        let ownEvents = TK_EPOLL_IN | TK_EPOLL_ET
        let results = [
            epoll, alarm,
            tk_epoll_add(epoll, wakeup, ownEvents, Self.ownTokens),
            tk_epoll_add(epoll, alarm, ownEvents, Self.ownTokens + 1),
        ]
        if let failed = results.first(where: { $0 < 0 }) {
            throw TransportError(errno: -failed, doing: "starting the loop \(name)")
        }
    }

    deinit {
        if alarm >= 0 { tk_close(alarm) }
        if epoll >= 0 { tk_close(epoll) }
    }

    // MARK: - Descriptors

    func register(
        _ descriptor: Int32, interest: Readiness, edgeTriggered: Bool, _ handler: any DescriptorHandler
    ) throws(TransportError) -> Registration {
        guard !isStopped else { throw TransportError(.misuse, "the event loop has been shut down") }
        let index: Int
        if let free = freeSlots.popLast() {
            index = free
        } else {
            index = slots.count
            slots.append(Slot(handler: nil, generation: 0))
        }
        let token = UInt64(slots[index].generation) << 32 | UInt64(index)
        let result = tk_epoll_add(epoll, descriptor, Self.events(interest, edgeTriggered), token)
        guard result == 0 else {
            freeSlots.append(index)
            throw TransportError(errno: -result, doing: "watching a descriptor")
        }
        slots[index].handler = handler
        return Registration(
            core: self, descriptor: descriptor, token: token, interest: interest, edgeTriggered: edgeTriggered)
    }

    func change(_ descriptor: Int32, interest: Readiness, edgeTriggered: Bool, token: UInt64) {
        guard !isStopped else { return }
        let result = tk_epoll_change(epoll, descriptor, Self.events(interest, edgeTriggered), token)
        precondition(result == 0, "a registered descriptor was closed before its registration was cancelled")
    }

    func unregister(_ descriptor: Int32, token: UInt64) {
        guard !isStopped else { return }
        _ = tk_epoll_remove(epoll, descriptor)
        let index = Int(token & 0xffff_ffff)
        slots[index].handler = nil
        slots[index].generation &+= 1
        freeSlots.append(index)
    }

    private static func events(_ interest: Readiness, _ edgeTriggered: Bool) -> UInt32 {
        interest.rawValue | (edgeTriggered ? TK_EPOLL_ET : 0)
    }

    // MARK: - Turns

    func runReady(on loop: EventLoop) {
        let executor = unsafe loop.asUnownedSerialExecutor()
        let preferred = unsafe loop.asUnownedTaskExecutor()
        // Jobs beget jobs; after so many generations what has gathered is sent and the descriptors get their turn.
        for _ in 0..<8 {
            if ready.isEmpty { return }
            swap(&ready, &batch)
            for work in batch {
                switch work {
                // In its actor a task that prefers the loop goes on from wait to wait without being queued once more.
                // One that does not is, but it comes from another thread, which costs twenty times that.
                case .actorJob(let job): unsafe job.runSynchronously(isolatedTo: executor, taskExecutor: preferred)
                // It belongs to no actor, or it would be an actor's job: run as one, it would be queued once more.
                case .taskJob(let job): unsafe job.runSynchronously(on: preferred)
                case .closure(let closure): closure()
                }
            }
            batch.removeAll(keepingCapacity: true)
        }
    }

    func finishTurn() {
        while !endOfTurn.isEmpty {
            swap(&endOfTurn, &endingBatch)
            for handler in endingBatch { handler.turnEnds() }
            endingBatch.removeAll(keepingCapacity: true)
        }
    }

    /// Waits for descriptors and the next timer, then serves what is ready.
    func wait(mayBlock: Bool, awake: () -> Void) {
        let timeout = mayBlock ? timeoutNanoseconds() : 0
        let count = unsafe tk_epoll_wait(epoll, &events, Int32(events.count), timeout)
        awake()
        // Less than zero is EINTR: another turn.
        for index in 0..<max(Int(count), 0) {
            let event = events[index]
            guard event.token < Self.ownTokens else { continue }
            let slot = Int(event.token & 0xffff_ffff)
            guard slots[slot].generation == UInt32(event.token >> 32) else { continue }
            slots[slot].handler?.ready(Readiness(rawValue: event.events))
        }
        fireTimers()
    }

    private func timeoutNanoseconds() -> Int64 {
        guard let earliest = timers.earliest else { return -1 }
        let now = tk_boottime()
        guard earliest.nanoseconds > now else { return 0 }
        let left = earliest.nanoseconds - now
        // epoll's own timeout stands still while the machine is suspended, so it serves short waits only; the alarm's
        // clock goes on. An alarm that is set for an earlier instant wakes the loop once for nothing.
        if left <= 200_000_000 { return Int64(left) }
        if let alarmInstant, alarmInstant <= earliest, alarmInstant.nanoseconds > now { return -1 }
        let set = tk_timerfd_arm(alarm, earliest.nanoseconds)
        guard set == 0 else { return 200_000_000 }
        alarmInstant = earliest
        return -1
    }

    private func fireTimers() {
        guard timers.earliest != nil else { return }
        let now = Instant(nanoseconds: tk_boottime())
        while let entry = timers.takeDue(now: now) { entry.timer.due(entry: entry.instant) }
    }

    /// Lets go of every descriptor and timer, and tells their owners.
    func stop() {
        isStopped = true
        let watched = slots
        slots = []
        for entry in timers.takeAll() { entry.timer.drop() }
        for slot in watched { slot.handler?.loopStopped() }
    }
}
