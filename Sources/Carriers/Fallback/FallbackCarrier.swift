public import TransportKit

/// Carries over one carrier, and over a second where the first does not get through (R108–R117).
///
/// The primary is always tried first. A session proves it by the first thing that arrives on it; a handshake below proves
/// nothing (R110). Until then a refusal, an unreachable service, a session that ends and 5 s of silence all hand over to the
/// secondary (R109, R111). A primary that has carried gets 5 s to carry again after each loss and each wake, and within them
/// nothing but their end hands over (R112, R113); `open` tries it again meanwhile. Silence counts only where somebody waits:
/// for a session, or for an answer to what was sent.
///
/// One carrier at a time: the primary ends, and its sessions with it, before the secondary is made and dialled (R114).
/// There is no way back for the life of this carrier (R115), unless a ``SwitchBackPolicy`` is set: the primary's sessions end then,
/// but not the primary, a session of it is tried beside the secondary, and one that stands takes over. Both may be any chain;
/// fallbacks nest.
public actor FallbackCarrier: Carrier {
    /// One call of `open`.
    private struct Call {
        /// Given when there is an outcome, or when what was waited for is over.
        let changed: Signal
        var dial: (id: UInt64, task: Task<Void, Never>)?
        var outcome: Result<any Socket, Close>?
        var pause: Task<Void, Never>?

        mutating func drop() -> Task<Void, Never>? {
            pause?.cancel()
            pause = nil
            defer { dial = nil }
            dial?.task.cancel()
            return dial?.task
        }
    }

    /// How long a session of the primary waits for whoever had one of the secondary.
    private static let keeping = Duration.seconds(10)

    private nonisolated let primary: any Carrier
    private nonisolated let deferred: DeferredCarrier
    private nonisolated let settings: FallbackSettings
    private nonisolated let executor: any SerialExecutor & TaskExecutor
    private nonisolated let time: any TimeSource
    private nonisolated let random: @Sendable () -> Double
    private nonisolated let state: FallbackState

    private var secondary: (any Carrier)?
    private var calls: [UInt64: Call] = [:]
    private var nextID: UInt64 = 0
    private var timer: (deadline: Instant, task: Task<Void, Never>)?
    /// Ends the primary, and goes on where that takes longer than the farewell.
    private var ending: Task<Void, Never>?
    private var leaving: Task<Void, Never>?
    /// Whether the primary has been left.
    private var isAway = false
    private var probe: FallbackProbe?
    private var closed: Close?

    /// Makes a carrier over two others; nothing is opened.
    ///
    /// - Parameters:
    ///   - primary: what is tried first.
    ///   - secondary: what takes over; it is made only then.
    ///   - names: what the log and the status call the two.
    ///   - settings: how long the primary is given.
    ///   - executor: where it works, best the loop of the carriers below.
    ///   - time: the clock of its windows.
    ///   - log: hears when the secondary takes over, and why.
    ///   - random: a number from 0 up to, but not including, 1; each pause asks for one.
    /// - Throws: where the two do not protect alike: which of them carries is the network's choice, and who can read what
    ///   travels must not be.
    public init(
        primary: any Carrier, secondary: DeferredCarrier,
        names: (primary: String, secondary: String) = ("primary", "secondary"),
        settings: FallbackSettings = FallbackSettings(), executor: any SerialExecutor & TaskExecutor,
        time: any TimeSource, log: Log = Log(), random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) throws(TransportError) {
        guard primary.protection == secondary.protection else {
            throw TransportError(
                .misuse,
                "\(names.primary) and \(names.secondary) do not protect alike "
                    + "(\(names.primary): \(primary.protection), \(names.secondary): \(secondary.protection))")
        }
        self.primary = primary
        deferred = secondary
        self.settings = settings
        self.executor = executor
        self.time = time
        self.random = random
        capabilities = primary.capabilities.intersection(secondary.capabilities)
        state = FallbackState(
            FallbackMachine(recovery: Self.patience(over: primary, settings), switchBack: settings.switchBack),
            names: names, time: time, log: log)
        state.whenChanged { [weak self, executor] in
            // It ends by itself, at once.
            Task(executorPreference: executor) { [weak self] in await self?.step() }
        }
    }

    /// The executor it was given.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// What both carriers can do: whichever carries, a session has it.
    public nonisolated let capabilities: Capabilities

    /// What both carriers give.
    public nonisolated var protection: Protection { primary.protection }

    /// Its state. An open session is said to be of the carrier that carries it.
    public nonisolated var states: CarrierStates { state.states.states }

    /// When the secondary took over, and why; nil while the primary carries.
    public nonisolated var takeover: FallbackTakeover? { state.takeover }

    /// The name of the carrier that carries, or is tried.
    public nonisolated var current: String {
        state.takeover == nil ? state.names.primary : state.names.secondary
    }

    /// Opens a session of the carrier that is in force.
    ///
    /// A call that waits for the primary when the secondary takes over goes on there. One that fails within the time that a
    /// primary has to carry again tries anew, after a pause with full jitter.
    public func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        nextID += 1
        let id = nextID
        let changed = Signal()
        state.beginOpening()
        calls[id] = Call(changed: changed)
        defer {
            _ = calls[id]?.drop()
            calls[id] = nil
            state.endOpening()
        }
        while true {
            if let closed { throw closed }
            let direction = state.tell { $0.opening(id, now: $1) }
            switch direction {
            case .dialPrimary:
                if let spare = try await openSpare(id, firstFlight) { return spare }
                dial(id, primary, firstFlight)
            case .dialSecondary: dial(id, try secondaryCarrier(), firstFlight)
            case .wait: break
            }
            guard let outcome = try await outcome(of: id, changed) else { continue }
            switch (outcome, direction) {
            case (.success(let socket), .dialPrimary):
                guard state.tell({ $0.opened(id, isAsked: firstFlight != nil, now: $1) }) else {
                    closeLater(socket)
                    continue
                }
                return hold(socket, id, of: primary, isWatched: true)
            case (.success(let socket), _):
                return hold(socket, id, of: secondary ?? primary, isWatched: false)
            case (.failure(let close), .dialPrimary):
                switch state.tell({ $0.openFailed(id, close, now: $1, fraction: random()) }) {
                case .fail: throw close
                case .takeOver: continue
                case .retry(let at): try await pause(id, until: at, changed)
                }
            case (.failure(let close), _):
                throw explained(close)
            }
        }
    }

    /// Wakes the carrier in force; a primary that has carried gets its time to carry again (R112).
    public func wake() async {
        guard closed == nil else { return }
        for socket in state.sockets { socket.doubt() }
        state.tell { $0.woken(now: $1) }
        for call in calls.values where call.pause != nil { call.changed.signal() }
        switch state.phase {
        case .primary: await primary.wake()
        case .leaving: break
        case .secondary: await secondary?.wake()
        }
    }

    /// Ends the carrier, its sessions, and the carriers below.
    public func close(_ code: CloseCode, reason: String) async {
        let close = closed ?? Close(code, reason: reason, origin: .local)
        closed = close
        timer?.task.cancel()
        let probe = takeProbe().map { end($0) }
        var dials: [Task<Void, Never>] = []
        for id in calls.keys {
            if let dial = calls[id]?.drop() { dials.append(dial) }
            calls[id]?.changed.signal()
        }
        let sockets = state.sockets
        await withDiscardingTaskGroup { group in
            for socket in sockets { group.addTask { _ = await socket.close(close.code, reason: close.reason) } }
        }
        await probe?.value
        await ending?.value
        await primary.close(close.code, reason: close.reason)
        await secondary?.close(close.code, reason: close.reason)
        for dial in dials { await dial.value }
        state.states.set(.closed(close))
    }

    // MARK: - Opening

    private func dial(_ id: UInt64, _ carrier: any Carrier, _ firstFlight: Bytes?) {
        nextID += 1
        let dial = nextID
        let task = Task(executorPreference: executor) {
            let result: Result<any Socket, Close>
            do throws(Close) {
                result = .success(try await carrier.open(firstFlight: firstFlight))
            } catch {
                result = .failure(error)
            }
            await self.settled(id, dial, result)
        }
        calls[id]?.dial = (dial, task)
    }

    private func settled(_ id: UInt64, _ dial: UInt64, _ result: Result<any Socket, Close>) async {
        guard calls[id]?.dial?.id == dial else {
            if case .success(let socket) = result {
                await socket.close(.normal, reason: "nobody waits for it any more")
            }
            return
        }
        calls[id]?.dial = nil
        calls[id]?.outcome = result
        calls[id]?.changed.signal()
    }

    /// - Returns: nil where what was waited for is over.
    private func outcome(of id: UInt64, _ changed: Signal) async throws(Close) -> Result<any Socket, Close>? {
        while true {
            let isGiven = await changed.wait()
            let outcome = calls[id]?.outcome
            calls[id]?.outcome = nil
            guard isGiven, !Task.isCancelled else {
                if case .success(let socket) = outcome { closeLater(socket) }
                state.tell { $0.gaveUp(id, now: $1) }
                throw .cancelled
            }
            // The signal may be of something that was over before the dial began.
            if outcome != nil || calls[id]?.dial == nil { return outcome }
        }
    }

    private func pause(_ id: UInt64, until deadline: Instant, _ changed: Signal) async throws(Close) {
        calls[id]?.pause = Task(executorPreference: executor) { [time] in
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            changed.signal()
        }
        let isGiven = await changed.wait()
        calls[id]?.pause?.cancel()
        calls[id]?.pause = nil
        guard isGiven else {
            state.tell { $0.gaveUp(id, now: $1) }
            throw .cancelled
        }
    }

    private func hold(
        _ socket: any Socket, _ id: UInt64, of carrier: any Carrier, isWatched: Bool, early: [Message] = []
    ) -> FallbackSocket {
        let carried = if case .open(let path) = carrier.states.latest { path.carrier } else { "" }
        let path = CarrierPath(
            carrier: carried, transport: socket.info.transport, remoteAddress: socket.info.remoteAddress)
        let held = FallbackSocket(socket, id: id, isWatched: isWatched, early: early, state: state)
        state.add(held, path: path)
        return held
    }

    /// Closes a session that nobody wants, without waiting for its peer.
    private func closeLater(_ socket: any Socket) {
        Task(executorPreference: executor) { _ = await socket.close(.normal, reason: "nobody waits for it any more") }
    }

    private func secondaryCarrier() throws(Close) -> any Carrier {
        if let secondary { return secondary }
        do {
            let made = try deferred.make()
            secondary = made
            return made
        } catch {
            throw explained(
                Close(
                    .internalError, reason: "it cannot be made: \(error)", origin: .local,
                    cause: error as? TransportError))
        }
    }

    /// Both reasons: which of the two carriers failed, and how (B74).
    private func explained(_ close: Close) -> Close {
        guard close.origin != .cancellation, let takeover else { return close }
        var close = close
        close.reason = "\(takeover.to): \(close); before, \(takeover.from): \(takeover.reason)"
        return close
    }

    // MARK: - Taking over

    /// Does what the machine asks for, and waits for its deadline.
    private func step() {
        guard closed == nil else { return }
        switch state.phase {
        case .primary: if isAway { goBack() }
        case .leaving: if !isAway { leave() }
        case .secondary:
            switch state.probe {
            case .none, .due: endProbe()
            case .opening: if probe == nil { beginProbe() }
            case .standing: break
            }
        }
        let deadline = state.deadline
        guard deadline != timer?.deadline else { return }
        timer?.task.cancel()
        timer = deadline.map { deadline in
            let task = Task(executorPreference: executor) { [time] in
                guard (try? await time.sleep(until: deadline)) != nil, !Task.isCancelled else { return }
                await self.timeUp()
            }
            return (deadline, task)
        }
    }

    private func timeUp() {
        timer = nil
        state.tell { $0.passed(now: $1) }
        step()
    }

    private func leave() {
        isAway = true
        endProbe()
        let dials = calls.keys.compactMap { calls[$0]?.drop() }
        for call in calls.values { call.changed.signal() }
        let (primary, sockets, over) = (primary, state.sockets, Signal())
        let isFinal = settings.switchBack == nil
        let words = "another carrier takes over"
        ending = Task(executorPreference: executor) {
            await withDiscardingTaskGroup { group in
                for socket in sockets { group.addTask { await socket.leave(words) } }
            }
            if isFinal { await primary.close(.goingAway, reason: words) }
            for dial in dials { await dial.value }
            over.signal()
        }
        leaving = Task(executorPreference: executor) { [executor, time, farewell = settings.farewell] in
            let timer = Task(executorPreference: executor) {
                guard (try? await time.sleep(for: farewell)) != nil else { return }
                over.signal()
            }
            _ = await over.wait()
            timer.cancel()
            await self.left()
        }
    }

    private func left() {
        state.tell { $0.left(now: $1) }
        for call in calls.values { call.changed.signal() }
    }

    // MARK: - The way back

    private func beginProbe() {
        nextID += 1
        let id = nextID
        let probe = FallbackProbe(id)
        self.probe = probe
        probe.task = Task(executorPreference: executor) { [primary] in
            do throws(Close) {
                let socket = try await primary.open()
                return await self.probeOpened(id, socket) ? try await socket.receive() : []
            } catch {
                await self.probeFailed(id, error)
                return []
            }
        }
    }

    /// - Returns: whether anybody wants the session.
    private func probeOpened(_ id: UInt64, _ socket: any Socket) async -> Bool {
        guard let probe, probe.id == id, state.tell({ $0.probeOpened(now: $1) }) else {
            await socket.close(.normal, reason: "nobody waits for it any more")
            return false
        }
        probe.socket = socket
        return true
    }

    private func probeFailed(_ id: UInt64, _ close: Close) {
        guard let probe, probe.id == id, close.origin != .cancellation else { return }
        self.probe = nil
        state.tell { $0.probeFailed(now: $1) }
    }

    private func takeProbe() -> FallbackProbe? {
        defer { probe = nil }
        return probe
    }

    private func endProbe() {
        guard let probe = takeProbe() else { return }
        // It ends by itself, within the linger time.
        _ = end(probe)
    }

    private func end(_ probe: FallbackProbe) -> Task<Void, Never> {
        probe.expiry?.cancel()
        probe.task?.cancel()
        return Task(executorPreference: executor) { [task = probe.task, socket = probe.socket] in
            _ = await task?.value
            _ = await socket?.close(.normal, reason: "nobody waits for it any more")
        }
    }

    /// The session that was tried stands: only now is what there was ended.
    private func goBack() {
        isAway = false
        leaving = nil
        for id in calls.keys {
            _ = calls[id]?.drop()
            calls[id]?.changed.signal()
        }
        let (sockets, before) = (state.sockets, ending)
        ending = Task(executorPreference: executor) {
            await before?.value
            await withDiscardingTaskGroup { group in
                for socket in sockets { group.addTask { await socket.leave("the first carrier carries again") } }
            }
        }
        guard let probe else { return }
        probe.expiry = Task(executorPreference: executor) { [time, id = probe.id] in
            guard (try? await time.sleep(for: Self.keeping)) != nil else { return }
            await self.expired(id)
        }
    }

    private func expired(_ id: UInt64) {
        if probe?.id == id { endProbe() }
    }

    /// The session that was tried, for whoever asks first after the return.
    private func openSpare(_ id: UInt64, _ firstFlight: Bytes?) async throws(Close) -> FallbackSocket? {
        guard !isAway, let spare = takeProbe() else { return nil }
        spare.expiry?.cancel()
        spare.task?.cancel()
        let early = await spare.task?.value ?? []
        guard let socket = spare.socket, state.tell({ $0.opened(id, isAsked: firstFlight != nil, now: $1) }) else {
            _ = end(spare)
            return nil
        }
        let held = hold(socket, id, of: primary, isWatched: true, early: early)
        if let firstFlight { try await held.send(Message(firstFlight)) }
        return held
    }

    /// A primary that is itself a fallback needs time for both of its own, or it never gets to its second.
    private static func patience(over primary: any Carrier, _ settings: FallbackSettings) -> Duration {
        guard let inner = primary as? FallbackCarrier else { return settings.recovery }
        return patience(over: inner.primary, inner.settings) + inner.settings.farewell + settings.recovery
    }
}
