internal import NoiseCarrier
internal import TransportKit

/// Where the table of a door is driven: messages go in batch by batch, and out as the wires take them.
actor DoorDesk {
    /// What the tasks of one link wait for.
    private final class Waiters {
        /// Something is to be sent, or the link has ended.
        let writer = Signal()
        /// What the door says has been taken, or the link has ended.
        let reader = Signal()
        /// The link has ended.
        let closer = Signal()
        /// How the socket is closed, where this end does.
        var close: Close?
        var isOver = false
        /// How many of the three tasks are still there.
        var tasks = 3
    }

    nonisolated let executor: any SerialExecutor & TaskExecutor
    private let time: any TimeSource
    private let log: Log
    /// Boxes that come and go could fill any log.
    private let lines: LogLimiter
    private let metrics: any MetricsSink
    private var table: DoorTable
    private var links: [UInt64: Waiters] = [:]
    private var timer: (deadline: Instant, task: Task<Void, Never>)?

    init(
        keys: [StaticPrivateKey], options: DoorOptions, directory: any HomeDirectory,
        executor: any SerialExecutor & TaskExecutor, time: any TimeSource, log: Log, metrics: any MetricsSink
    ) {
        self.executor = executor
        self.time = time
        self.log = log
        lines = LogLimiter(interval: .seconds(1), time: time)
        self.metrics = metrics
        table = DoorTable(keys: keys, options: options, directory: directory)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// A link has opened; nil where there are too many.
    func opened(_ leg: DoorLeg, address: AddressKey?) -> UInt64? {
        let link = table.opened(leg, address: address, now: time.now())
        if let link { links[link] = Waiters() }
        settle()
        return link
    }

    /// Messages have arrived. Returns once more may be read.
    ///
    /// - Returns: false once the link has ended.
    func received(_ batch: [Message], on link: UInt64) async -> Bool {
        guard let waiters = links[link] else { return false }
        let now = time.now()
        for message in batch { table.received(message, on: link, now: now) }
        settle()
        while !waiters.isOver, table.isBackedUp(link) {
            guard await waiters.reader.wait() else { return false }
        }
        return !waiters.isOver
    }

    /// Waits for what the link sends next; nil once it has ended.
    func next(_ link: UInt64) async -> [Message]? {
        guard let waiters = links[link] else { return nil }
        while !waiters.isOver {
            let batch = table.next(link, now: time.now())
            settle()
            if !table.isBackedUp(link) { waiters.reader.signal() }
            if !batch.isEmpty { return batch }
            guard await waiters.writer.wait() else { return nil }
        }
        return nil
    }

    /// The socket has ended, or the task that reads or writes has.
    func ended(_ link: UInt64) {
        guard let waiters = links[link] else { return }
        table.ended(link, now: time.now())
        settle()
        over(waiters)
        leave(link, waiters)
    }

    /// Waits for the end of the link.
    ///
    /// - Returns: with what the socket is to be closed; nil where it has ended by itself.
    func closing(_ link: UInt64) async -> Close? {
        guard let waiters = links[link] else { return nil }
        while !waiters.isOver, await waiters.closer.wait() {}
        defer { leave(link, waiters) }
        return waiters.close
    }

    private func leave(_ link: UInt64, _ waiters: Waiters) {
        waiters.tasks -= 1
        guard waiters.tasks == 0 else { return }
        links[link] = nil
        if links.isEmpty { setTimer() }
    }

    private func over(_ waiters: Waiters) {
        waiters.isOver = true
        waiters.closer.signal()
        waiters.writer.signal()
        waiters.reader.signal()
    }

    // MARK: - What the table wants

    private func settle() {
        for effect in table.takeEffects() {
            switch effect {
            case .wake(let link):
                links[link]?.writer.signal()
            case .close(let link, let code, let reason):
                guard let waiters = links[link] else { continue }
                waiters.close = Close(code, reason: reason, origin: .local)
                over(waiters)
            case .log(let level, let message):
                write(level, message)
            case .count(let name, let amount):
                metrics.add(amount, to: name)
            case .gauge(let name, let amount):
                metrics.change(name, by: amount)
            }
        }
        for (name, amount) in table.takeCounts() { metrics.add(amount, to: name) }
        setTimer()
    }

    private func write(_ level: LogLevel, _ message: String) {
        switch level {
        case .debug: log.debug(message)
        case .info: lines.run { (more: String) in log.info(message + more) }
        case .warning: log.warning(message)
        case .error: log.error(message)
        }
    }

    private func setTimer() {
        guard let deadline = table.deadline, !links.isEmpty else {
            timer?.task.cancel()
            timer = nil
            return
        }
        if let timer, timer.deadline <= deadline { return }
        timer?.task.cancel()
        let task = Task(executorPreference: executor) { [time] in
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            await self.passed()
        }
        timer = (deadline, task)
    }

    private func passed() {
        timer = nil
        table.passed(now: time.now())
        settle()
    }
}
