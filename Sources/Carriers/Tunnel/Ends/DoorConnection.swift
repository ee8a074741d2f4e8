internal import NoiseCarrier
internal import TransportKit

/// Drives a ``DoorSession`` over the sockets of a carrier: dials, reads and writes, keeps its time, and gives each session a
/// socket. It ends with its link, and is not used again.
actor DoorConnection {
    /// What its owner has to know.
    enum Event: Sendable {
        /// The door has answered.
        case greeted
        /// The client is in, or the home is served.
        case stands
        /// A session begins at this box.
        case begun(TunnelAddress, TunnelSocket)
        /// The other end has ended a session that had carried for so long.
        case sessionEnded(TunnelAddress, Close, carried: Duration)
        /// The link has ended, and with it a session that had carried for so long. Nothing comes after it.
        case over(Close, carried: Duration)
    }

    /// How much of a session may wait to be sent before `send` suspends: control, and bulk.
    static let sendLimit: UInt64 = 262_144
    /// How much a socket's close waits for what it has accepted.
    static let linger = Duration.seconds(5)

    nonisolated let executor: any SerialExecutor & TaskExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private nonisolated let carrier: any Carrier
    nonisolated let time: any TimeSource
    private nonisolated let metrics: any MetricsSink
    private nonisolated let tell: @Sendable (DoorConnection, Event) async -> Void

    var machine: DoorSession
    private var socket: (any Socket)?
    private var task: Task<Void, Never>?
    private(set) var over: Close?
    /// Why no session of a client can be had over the link as it stands (R91).
    private(set) var unavailable: Close?
    private var stopping: Close?
    /// Whether nobody is left who opens sessions.
    var isOrphaned = false
    var handles: [UInt64: TunnelHandle] = [:]
    var ids: [TunnelAddress: UInt64] = [:]
    private var nextID: UInt64 = 0
    /// The sockets whose sends wait for room.
    var blocked: Set<UInt64> = []
    private var dialWaiters: [Signal] = []

    private var isWriting = false
    /// Given when something was written.
    private let room = Signal()
    private var timer: Task<Void, Never>?
    private var armed: Instant?
    private var news: [Event] = []
    private var isTelling = false
    private var counted = 0

    /// Makes a connection; nothing is dialled before ``start()``.
    ///
    /// - Parameters:
    ///   - machine: what to say.
    ///   - carrier: what reaches the door.
    ///   - tell: hears what happens, one thing after the other.
    init(
        _ machine: consuming DoorSession, through carrier: any Carrier, executor: any SerialExecutor & TaskExecutor,
        time: any TimeSource, metrics: any MetricsSink, tell: @escaping @Sendable (DoorConnection, Event) async -> Void
    ) {
        self.machine = machine
        self.carrier = carrier
        self.executor = executor
        self.time = time
        self.metrics = metrics
        self.tell = tell
    }

    /// Which of the door's keys is in use.
    var keyInUse: Int { machine.keyInUse }

    /// Whether the door has answered.
    var isGreeted: Bool { machine.isGreeted }

    /// Says something of the link.
    func say(_ control: DoorControl) {
        machine.say(control)
        kick()
    }

    // MARK: - The link

    /// Dials.
    func start() {
        precondition(task == nil, "a connection is used once")
        // It ends with the link, or is cancelled by `stop`.
        task = Task(executorPreference: executor) { await self.run() }
    }

    /// Ends the link, and its sessions with it.
    func stop(_ close: Close) async {
        if over != nil || stopping != nil { return }
        stopping = close
        if let socket {
            await socket.close(close.code, reason: close.reason)
        } else {
            task?.cancel()
        }
    }

    private func run() async {
        while true {
            let close = await dialAndRead()
            // R90
            if stopping == nil, close.code == .refused, close.origin == .remote, (try? machine.tryNextKey()) == true {
                socket = nil
                continue
            }
            return finish(stopping ?? close)
        }
    }

    private func dialAndRead() async -> Close {
        let socket: any Socket
        do throws(Close) {
            socket = try await carrier.open(firstFlight: machine.message1)
        } catch {
            return error
        }
        if let stopping { return await socket.close(stopping.code, reason: stopping.reason) }
        self.socket = socket
        machine.opened(now: time.now())
        for signal in dialWaiters { signal.signal() }
        arm()
        kick()
        while true {
            do throws(Close) {
                let batch = try await socket.receive()
                machine.received(batch, now: time.now())
            } catch {
                return error == .cancelled ? await socket.close(.goingAway, reason: "the link is given up") : error
            }
            react()
            kick()
            arm()
            // What a door asks for and does not read must not pile up here; where it never reads, its silence ends the link.
            while machine.isBackedUp, isWriting, over == nil, stopping == nil {
                guard await room.wait() else { break }
            }
        }
    }

    private func finish(_ close: Close) {
        timer?.cancel()
        over = close
        let left = machine.finish(now: time.now())
        for (address, rest, _) in left {
            if let handle = handle(of: address) { end(handle, close, rest: rest) }
        }
        for handle in handles.values where handle.close == nil { end(handle, close, rest: []) }
        for signal in dialWaiters { signal.signal() }
        report(.over(close, carried: left.map(\.carried).max() ?? .zero))
    }

    /// Waits until the link is dialled.
    func waitUntilDialled() async throws(Close) -> any Socket {
        let signal = Signal()
        dialWaiters.append(signal)
        defer { dialWaiters.removeAll { $0 === signal } }
        while true {
            if let over { throw over }
            if let socket { return socket }
            guard await signal.wait() else { throw .cancelled }
        }
    }

    // MARK: - Output and time

    /// Has a task write where there is something to write. It ends with its work, or with the link.
    func kick() {
        guard !isWriting, over == nil, socket != nil, machine.outbox.isReady else { return }
        isWriting = true
        Task(executorPreference: executor) { await self.write() }
    }

    private func write() async {
        while over == nil, let socket, machine.outbox.isReady {
            let batch = machine.outbox.next()
            for id in blocked { handles[id].map(wakeSenders) }
            for handle in handles.values where !handle.closers.isEmpty { handle.closers.forEach { $0.signal() } }
            do throws(Close) {
                try await socket.send(batch)
            } catch {
                // Whoever reads finds out how it ended, once it has read what came before.
                break
            }
            room.signal()
        }
        isWriting = false
        room.signal()
    }

    func arm() {
        guard over == nil, let deadline = machine.deadline else { return }
        // One that comes too early looks again.
        if let armed, armed <= deadline { return }
        timer?.cancel()
        armed = deadline
        timer = Task(executorPreference: executor) { [time] in
            guard (try? await time.sleep(until: deadline)) != nil, !Task.isCancelled else { return }
            await self.timeUp()
        }
    }

    private func timeUp() {
        armed = nil
        machine.passed(now: time.now())
        react()
        kick()
        arm()
    }

    // MARK: - Events

    func react() {
        let dropped = machine.dropped - counted
        if dropped > 0 { metrics.add(dropped, to: "tunnel.messages.dropped") }
        counted = machine.dropped
        for event in machine.takeEvents() {
            switch event {
            case .greeted(let box):
                heard(of: box)
                report(.greeted)
            case .box(let box): heard(of: box)
            case .stands: report(.stands)
            case .begun(let address):
                guard let socket else { continue }
                let handle = makeHandle(address, hasBegun: true)
                handle.isAnswered = true
                report(.begun(address, makeSocket(handle, over: socket)))
            case .readable(let address):
                guard let handle = handle(of: address) else { continue }
                handle.isAnswered = true
                handle.received.signal()
            case .writable(let address):
                if let handle = handle(of: address) { wakeSenders(handle) }
            case .ended(let address, let rest, let carried):
                guard let handle = handle(of: address) else { continue }
                let close =
                    handle.isAnswered
                    ? Close(.normal, reason: "the other end has ended the session", origin: .remote)
                    : Close(.nobodyThere, reason: "the session was ended before it was answered", origin: .remote)
                end(handle, close, rest: rest)
                report(.sessionEnded(address, close, carried: carried))
            case .failed(let close):
                fail(close)
            }
        }
    }

    /// The door says what the box of a client can take. Sessions that the box has answered stay as they are (R93).
    private func heard(of box: BoxCapabilities?) {
        switch machine.end {
        case .box: return
        case .client: break
        }
        // R91, R117: a box that takes none is this end's to know; one that is away may be back at any moment.
        let refusal: (reason: String, origin: Close.Origin)? =
            switch box {
            case nil: ("the box is not linked to the door", .remote)
            case let box? where !box.contains(BoxCapabilities.tunnel):
                ("the box takes no sessions through the door", .local)
            case .some: nil
            }
        unavailable = refusal.map { refusal in
            Close(
                .nobodyThere, reason: refusal.reason, origin: refusal.origin,
                cause: TransportError(.unsupported, refusal.reason))
        }
        guard let unavailable else { return }
        for handle in handles.values where !handle.isAnswered { abandon(handle, unavailable) }
    }

    private func fail(_ close: Close) {
        guard stopping == nil else { return }
        let cause = close.cause ?? TransportError(.timedOut, close.reason)
        stopping = .pathLost(cause)
        guard let socket else { return }
        // It ends by itself within the linger time of the link.
        Task(executorPreference: executor) { _ = await socket.close(close.code, reason: close.reason) }
    }

    /// Tells the owner, one thing after the other.
    private func report(_ event: Event) {
        news.append(event)
        guard !isTelling else { return }
        isTelling = true
        Task(executorPreference: executor) { await self.tellNews() }
    }

    private func tellNews() async {
        while !news.isEmpty { await tell(self, news.removeFirst()) }
        isTelling = false
    }

    // MARK: - Handles

    func makeHandle(_ address: TunnelAddress, hasBegun: Bool) -> TunnelHandle {
        nextID += 1
        let handle = TunnelHandle(id: nextID, address: address, hasBegun: hasBegun)
        handles[handle.id] = handle
        ids[address] = handle.id
        return handle
    }

    func makeSocket(_ handle: TunnelHandle, over socket: any Socket) -> TunnelSocket {
        var info = socket.info
        info.capabilities = info.capabilities.intersection(.datagrams)
        // Where the link itself takes less than the wire of the door.
        let room = info.maxMessageBytes - TunnelFrame.headerLength(machine.end.sends)
        info.maxMessageBytes = max(0, min(DoorLimits.framePayload, room))
        return TunnelSocket(id: handle.id, info: info, connection: self)
    }

    func handle(of address: TunnelAddress) -> TunnelHandle? { ids[address].flatMap { handles[$0] } }

    /// The session is over.
    func end(_ handle: TunnelHandle, _ close: Close, rest: [Message]) {
        guard handle.close == nil else { return }
        handle.rest += rest
        handle.close = close
        ids[handle.address] = nil
        handle.wakeEverybody()
    }
}
