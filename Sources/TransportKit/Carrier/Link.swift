/// Keeps one session of a carrier open, for whoever just wants the connection to stay up.
///
/// ```swift
/// let link = Link(carrier, executor: loop, time: loop)
/// try await withThrowingTaskGroup(of: Void.self) { group in
///     group.addTask { await link.run() }
///     let socket = try await link.socket()      // waits until a session is open
///     …
///     group.cancelAll()                          // ends the session
/// }
/// ```
///
/// After a failure it waits with full jitter, after a session that lasted it dials at once (R81, R82), unless the service
/// itself has gone: everybody who was there comes back then, and the wait is wide from the start. It keeps no more for a
/// carrier that has failed for days than for one that has failed once. It notices the end of a session by what the
/// calls on its socket throw.
public actor Link {
    /// When sessions are opened.
    public enum Opening: Sendable, Hashable {
        /// As soon as there is none.
        case eagerly
        /// When somebody asks for one.
        case lazily
    }

    /// A person may sign in at any time, and nothing tells of it (B34).
    private static let signInPause = Duration.seconds(5)

    private nonisolated let executor: any SerialExecutor & TaskExecutor
    private nonisolated let source = CarrierStateSource()
    private let carrier: any Carrier
    private let opening: Opening
    private let time: any TimeSource
    private let random: @Sendable () -> Double
    private var journal: LinkJournal
    private var backoff: Backoff

    private var session: LinkSocket?
    private var waiting: [Signal] = []
    private var pause: Signal?
    private var wakes = 0
    /// How often somebody has asked for a session who is in a hurry.
    private var asks = 0
    /// A session has ended, and no other has opened since.
    private var hasLostSession = false
    private var isRunning = false
    private let demand = Signal()

    /// Makes a link; nothing is opened before ``run()``.
    ///
    /// - Parameters:
    ///   - carrier: what opens the sessions; it stays the caller's to close.
    ///   - name: stands in front of its log lines.
    ///   - opening: whether a session is wanted all the time, or only once somebody asks.
    ///   - backoff: how long to wait after a failure.
    ///   - executor: where the link works, best the loop of the carrier.
    ///   - time: the clock of its waits.
    ///   - log: hears of each change, and of failures that repeat at every power of two.
    ///   - random: a number from 0 up to, but not including, 1; each wait asks for one.
    public init(
        _ carrier: any Carrier, name: String = "link", opening: Opening = .eagerly, backoff: Backoff = Backoff(),
        executor: any SerialExecutor & TaskExecutor, time: any TimeSource, log: Log = Log(),
        random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.carrier = carrier
        self.opening = opening
        self.backoff = backoff
        self.executor = executor
        self.time = time
        self.random = random
        journal = LinkJournal(name: name, log: log)
    }

    /// The executor it was given.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Its state: the latest first, then every change.
    public nonisolated var states: CarrierStates { source.states }

    /// Waits for an open session.
    ///
    /// - Parameter isUrgent: whether somebody needs it now, so that a long wait is cut short.
    /// - Throws: the end of the carrier once it was closed; ``Close/cancelled`` where the waiting task was cancelled.
    public func socket(isUrgent: Bool = true) async throws(Close) -> any Socket {
        let signal = Signal()
        waiting.append(signal)
        defer { waiting.removeAll { $0 === signal } }
        demand.signal()
        if isUrgent {
            asks += 1
            pause?.signal()
        }
        while true {
            if let session, !session.hasEnded { return session }
            if case .closed(let close) = source.latest { throw close }
            guard await signal.wait() else { throw .cancelled }
        }
    }

    /// The network is back or has changed: the carrier is woken, and no wait goes on (R61).
    public func wake() async {
        backoff.reset()
        wakes += 1
        pause?.signal()
        await carrier.wake()
    }

    /// Keeps a session open until the calling task is cancelled or the carrier was closed; then ends the session with
    /// 1001. One task may run it at a time; a second call returns at once.
    public func run() async {
        guard !isRunning else { return }
        isRunning = true
        defer { isRunning = false }
        while !Task.isCancelled {
            if opening == .lazily, waiting.isEmpty {
                show(.idle)
                guard await demand.wait() else { break }
                continue
            }
            guard let failure = await openAndHold() else { break }
            guard await rest(failure.wait, after: failure.close) else { break }
        }
        if case .closed = source.latest { return }
        show(.idle)
    }

    /// Opens a session and holds it until it ends.
    ///
    /// - Returns: how it failed or ended and how long to wait, or nil where there is nothing more to do.
    private func openAndHold() async -> (close: Close, wait: Duration)? {
        show(.connecting(attempt: backoff.attempts + 1))
        let wakesBefore = wakes
        let inner: any Socket
        do throws(Close) {
            inner = try await carrier.open()
        } catch {
            if Task.isCancelled { return nil }
            if case .closed(let close) = carrier.states.latest {
                finish(close)
                return nil
            }
            // What failed before a wake says nothing about the network after it.
            guard wakes == wakesBefore else { return (error, .zero) }
            let isShared = error.comesFromService || (hasLostSession && error.cause?.code == .refused)
            let limit = error.cause?.code == .intercepted ? Self.signInPause : nil
            return (error, backoff.failed(isShared: isShared, fraction: random(), atMost: limit))
        }
        let opened = time.now()
        let socket = LinkSocket(inner)
        session = socket
        hasLostSession = false
        let carried = if case .open(let path) = carrier.states.latest { path.carrier } else { "" }
        show(
            .open(
                CarrierPath(
                    carrier: carried, transport: inner.info.transport, remoteAddress: inner.info.remoteAddress)))
        for signal in waiting { signal.signal() }
        let isOver = await socket.end.wait()
        session = nil
        guard isOver, let close = socket.close else {
            // The caller of `run` is cancelled, and a close in its task would not wait for the last bytes.
            await Task(executorPreference: executor) { _ = await inner.close(.goingAway, reason: "the link ends") }
                .value
            return nil
        }
        hasLostSession = true
        let wait = backoff.ended(
            after: time.now() - opened, isShared: close.comesFromService, fraction: random())
        return (close, wakes == wakesBefore ? wait : .zero)
    }

    /// Waits until the time is over, less where somebody asks for a session meanwhile, until somebody wakes the link, or
    /// the task is cancelled. Whoever goes on waiting after that hurries nothing any more.
    private func rest(_ duration: Duration, after close: Close) async -> Bool {
        let (start, wakesBefore, asksBefore) = (time.now(), wakes, asks)
        var until = start + duration
        show(.waiting(until: until, after: close))
        var isHurried = false
        while wakes == wakesBefore, time.now() < until {
            if !isHurried, asks != asksBefore {
                isHurried = true
                until = min(until, start + backoff.wait(onDemand: random()))
                source.set(.waiting(until: until, after: close))
            }
            guard await pause(until: until) else { return false }
        }
        return !Task.isCancelled
    }

    /// Waits until then, or until something has changed.
    private func pause(until deadline: Instant) async -> Bool {
        let signal = Signal()
        pause = signal
        defer { pause = nil }
        let timer = Task(executorPreference: executor) { [time] in
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            signal.signal()
        }
        defer { timer.cancel() }
        return await signal.wait()
    }

    private func finish(_ close: Close) {
        show(.closed(close))
        for signal in waiting { signal.signal() }
    }

    private func show(_ state: CarrierState) {
        journal.note(state, now: time.now())
        source.set(state)
    }
}

extension Close {
    /// Whether the service has said that it goes away, which it says to everybody.
    fileprivate var comesFromService: Bool {
        origin == .remote && (code == .goingAway || code == .restarting || code == .tryAgainLater)
    }
}
