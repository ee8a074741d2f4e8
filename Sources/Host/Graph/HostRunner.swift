internal import DirectCarrier
internal import FallbackCarrier
internal import Glibc
internal import MuxCarrier
internal import Synchronization
public import TransportIO
public import TransportKit

/// Runs what a graph describes: binds it, serves it, and lets it finish when it is asked to stop.
public final class HostRunner: Sendable {
    /// What is bound.
    public struct Bound: Sendable {
        /// The addresses of the listeners by name.
        public var listeners: [String: Endpoint]
        /// The pins of the certificates of the listeners by name.
        public var pins: [String: PublicKeyHash]
        /// The addresses of the forwards, in the order of the file; nil for an optional one whose port is taken.
        public var forwards: [SocketAddress?]
    }

    private let graph: HostGraph
    private let loop: EventLoop
    private let log: Log
    private let stop = Signal()
    private let isStopping = Atomic(false)
    /// What binds at the start, so that a stop can cut it short.
    private let binding = Mutex<Task<Result<([BoundListener], [ListeningForward?]), TransportError>, Never>?>(nil)
    private let activity = Activity()
    private let links: [String: CarrierLink]
    /// The box that the host is, if it is one.
    let box: BoxRole?
    private let board: StatusBoard

    /// How long an optional forward whose port was taken waits before it tries again.
    private static let retryInterval = Duration.seconds(5)
    /// How long sessions may take to say goodbye once the grace time is over.
    private static let farewell = Duration.seconds(2)

    /// Prepares to run a graph on a loop; binds nothing.
    public convenience init(_ graph: HostGraph, loop: EventLoop, log: Log = Log()) {
        self.init(graph, state: nil, loop: loop, log: log)
    }

    /// Prepares to run a graph whose devices are kept in a state directory.
    init(_ graph: HostGraph, state: StateDirectory?, loop: EventLoop, log: Log) {
        self.graph = graph
        self.loop = loop
        self.log = log.named("host")
        board = StatusBoard(time: loop)
        box = graph.box.map { [activity] in BoxRole($0, state: state, activity: activity, loop: loop, log: log) }
        links = graph.forwards.reduce(into: [:]) { links, plan in
            guard links[plan.carrier] == nil, let carrier = graph.carriers[plan.carrier] else { return }
            links[plan.carrier] = CarrierLink(
                Self.withStreams(carrier, loop), name: plan.carrier, loop: loop, log: log)
        }
    }

    /// Whoever forwards asks for streams and does not care where they come from.
    private static func withStreams(_ carrier: any Carrier, _ loop: EventLoop) -> any Carrier {
        carrier.capabilities.contains(.streams) ? carrier : MuxCarrier(over: carrier, executor: loop, time: loop)
    }

    /// The network is back or has changed: carriers dial anew, without waiting for the end of their backoff (R61). Any
    /// task may call it.
    public func wake() async {
        for link in links.values { await link.wake() }
        await box?.wake()
    }

    /// What it says of itself.
    ///
    /// - Parameters:
    ///   - config: what it runs.
    ///   - state: its state directory.
    ///   - network: the key under which its carriers know the network now.
    ///   - memory: what networks are remembered by.
    func status(config: String, state: String?, network: String?, memory: any PathMemory) -> StatusReport {
        let now = loop.wallNow()
        return StatusReport(
            version: HostVersion.text, pid: getpid(), config: config, now: now.seconds,
            uptimeSeconds: (loop.now() - board.started).components.seconds, state: state, network: network,
            carriers: graph.carriers.sorted { $0.key < $1.key }.map { name, carrier in
                let note = board.note(of: name, carrier.states.latest)
                var status = StatusReport.Carrier(name, note, now: loop.now())
                status.url = (carrier as? DirectCarrier).map { "\($0.destination)".printable() }
                status.fallback = (carrier as? FallbackCarrier).map { StatusReport.Fallback($0) }
                return status
            },
            paths: paths(memory.all(at: now), network: network, at: now), forwards: board.forwards,
            listeners: board.listeners, box: box?.status(now: now))
    }

    private func paths(
        _ known: [PathKey: PathHistory], network: String?, at now: WallTime
    ) -> [StatusReport.Path] {
        let carriers = graph.carriers.values.compactMap { $0 as? DirectCarrier }
        return known.map { key, history in
            var path = StatusReport.Path(key, history, isCurrent: key.network == network)
            let carrier = carriers.first {
                "\($0.destination.endpoint.host):\($0.destination.endpoint.port)" == key.destination
            }
            for index in path.demotions.indices {
                let transport = TransportName(rawValue: path.demotions[index].transport)
                guard let carrier, !carrier.standsBack(transport, history: history, at: now) else { continue }
                path.demotions[index].isSuspended = true
            }
            return path
        }.sorted { left, right in
            if left.isCurrent != right.isCurrent { return left.isCurrent }
            return (left.network, left.destination) < (right.network, right.destination)
        }
    }

    /// What happened while a carrier opened its last sessions; nil where there is no such carrier.
    func explain(_ name: String) -> ExplainReport? {
        guard let carrier = graph.carriers[name] else { return nil }
        let latest = board.note(of: name, carrier.states.latest).state
        let direct = carrier as? DirectCarrier
        return ExplainReport(
            carrier: name, state: "\(latest)".printable(), now: loop.wallNow().seconds,
            url: direct.map { "\($0.destination)".printable() }, race: direct?.policies.race,
            demotion: direct?.policies.demotion,
            establishments: direct?.reports.map { ExplainReport.Establishment($0) } ?? [])
    }

    /// The names of its carriers.
    var carrierNames: [String] { graph.carriers.keys.sorted() }

    /// The addresses of this machine that the sessions of its carriers stand on.
    var liveAddresses: Set<SocketAddress.Address> {
        let carriers = graph.carriers.values.compactMap { $0 as? DirectCarrier }
        return Set(carriers.flatMap(\.localAddresses).map(\.address))
    }

    /// How many connections and sessions it serves.
    package var openConnections: Int { activity.count }

    /// Asks the host to stop: nothing new is accepted, transfers go on until they end or the grace time is over, sessions
    /// are closed with 1001, and `run` returns. Any thread may call it.
    public func beginGracefulShutdown() {
        isStopping.store(true, ordering: .releasing)
        binding.withLock { $0 }?.cancel()
        stop.signal()
    }

    /// Binds everything, then runs until ``beginGracefulShutdown()`` or until the task is cancelled. A network that is
    /// down ends nothing (B25).
    ///
    /// Call it from a task of the loop.
    ///
    /// - Parameter whenBound: called once, when every address is bound; not where it was asked to stop before.
    /// - Throws: why an address could not be bound; nothing is left bound then.
    public func run(whenBound: @Sendable (Bound) -> Void) async throws(TransportError) {
        guard let (listeners, forwards) = try await bindUntilStopped() else { return }
        announce(listeners, forwards)
        board.bound(listeners, zip(graph.forwards, forwards).map { ($0, $1) })
        whenBound(
            Bound(
                listeners: Dictionary(uniqueKeysWithValues: listeners.map { ($0.plan.name, $0.endpoint) }),
                pins: listeners.reduce(into: [:]) { $0[$1.plan.name] = $1.pin },
                forwards: forwards.map { $0?.localAddress }))

        await withDiscardingTaskGroup { group in
            for listener in listeners { group.addTask { await listener.run() } }
            if let box { group.addTask { await box.run() } }
            for link in links.values { group.addTask { await link.run() } }
            for (name, carrier) in graph.carriers {
                let states = links[name]?.states ?? carrier.states
                group.addTask { [board] in await board.follow(name, states) }
            }
            let late = RunningForwards(forwards.compactMap(\.self))
            for forward in late.all { group.addTask { await forward.run() } }
            for (plan, forward) in zip(graph.forwards, forwards) where forward == nil {
                guard let link = links[plan.carrier] else { continue }
                group.addTask { [self] in await retry(plan, link, into: late) }
            }
            let wasAsked = await stop.wait()
            await drain(listeners, late, grace: wasAsked ? graph.grace : .zero)
            group.cancelAll()
        }
        for carrier in graph.carriers.values { await carrier.close(.goingAway, reason: "the host is stopping") }
    }

    // MARK: - Binding

    /// Binds everything; nil where it was asked to stop before that was done, and nothing is left bound then.
    private func bindUntilStopped() async throws(TransportError) -> ([BoundListener], [ListeningForward?])? {
        guard !isStopping.load(ordering: .acquiring) else { return nil }
        // Looking up a name may take its time, and is cut short.
        let binding = Task(executorPreference: loop) {
            [self] () async -> Result<([BoundListener], [ListeningForward?]), TransportError> in
            do throws(TransportError) {
                return .success(try await bindAll())
            } catch {
                return .failure(error)
            }
        }
        let outcome = await withTaskCancellationHandler {
            self.binding.withLock { $0 = binding }
            if isStopping.load(ordering: .acquiring) { binding.cancel() }
            return await binding.value
        } onCancel: {
            binding.cancel()
        }
        self.binding.withLock { $0 = nil }
        guard isStopping.load(ordering: .acquiring) else { return try outcome.get() }
        guard case .success(let (listeners, forwards)) = outcome else { return nil }
        for listener in listeners { await listener.stopAccepting() }
        for forward in forwards { await forward?.stopAccepting() }
        return nil
    }

    private func bindAll() async throws(TransportError) -> ([BoundListener], [ListeningForward?]) {
        let listeners = try await bindListeners()
        do {
            return (listeners, try await bindForwards())
        } catch {
            for listener in listeners { await listener.stopAccepting() }
            throw error
        }
    }

    private func bindListeners() async throws(TransportError) -> [BoundListener] {
        var bound: [BoundListener] = []
        for plan in graph.listeners {
            do {
                bound.append(try await BoundListener.bind(plan, activity: activity, log: log))
            } catch {
                for listener in bound { await listener.stopAccepting() }
                throw TransportError(
                    error.code, "the listener '\(plan.name)' cannot start: \(error.message)", number: error.number)
            }
        }
        return bound
    }

    private func bindForwards() async throws(TransportError) -> [ListeningForward?] {
        var bound: [ListeningForward?] = []
        for plan in graph.forwards {
            guard let link = links[plan.carrier] else { continue }
            do {
                bound.append(try await bind(plan, link))
            } catch {
                guard plan.isOptional else {
                    for forward in bound { await forward?.stopAccepting() }
                    throw error
                }
                log.warning("\(error.message); it is optional, and is tried again every \(Self.retryInterval.inWords)")
                bound.append(nil)
            }
        }
        return bound
    }

    private func bind(_ plan: ForwardPlan, _ link: CarrierLink) async throws(TransportError) -> ListeningForward {
        do throws(TransportError) {
            let address = try await Resolver.address(of: plan.listen.host, port: plan.listen.port)
            let listener = try await TCPListener.bind(address, loop: loop, log: log)
            return ListeningForward(
                name: "forward \(listener.localAddress)", listener: listener, to: plan.to, patience: plan.patience,
                sessions: link, activity: activity, time: loop, log: log)
        } catch {
            var message = "the forward at \(plan.listen) cannot start: \(error.message)"
            if error.code == .addressInUse, let holder = PortHolder.describe(.tcp, port: plan.listen.port) {
                message += ", \(holder)"
            }
            throw TransportError(error.code, message, number: error.number)
        }
    }

    private func retry(_ plan: ForwardPlan, _ link: CarrierLink, into running: RunningForwards) async {
        while true {
            do {
                try await loop.sleep(for: Self.retryInterval)
            } catch {
                return
            }
            guard !isStopping.load(ordering: .acquiring) else { return }
            guard let forward = try? await bind(plan, link) else { continue }
            board.bound(forward, plan)
            log.info("\(forward.name) → \(plan.to) is bound now")
            guard running.add(forward) else {
                await forward.stopAccepting()
                return
            }
            return await forward.run()
        }
    }

    private func announce(_ listeners: [BoundListener], _ forwards: [ListeningForward?]) {
        for listener in listeners {
            let transports = Words.list(listener.plan.transports.map(\.name.displayName))
            let pin = listener.pin.map { ", pin \($0)" } ?? ""
            log.info("listener \(listener.plan.name): \(listener.endpoint) over \(transports)\(pin)")
        }
        for (plan, forward) in zip(graph.forwards, forwards) {
            guard let forward else { continue }
            log.info("\(forward.name) → \(plan.to) through \(plan.carrier)")
        }
    }

    // MARK: - Stopping

    private func drain(_ listeners: [BoundListener], _ forwards: RunningForwards, grace: Duration) async {
        isStopping.store(true, ordering: .releasing)
        let services = graph.listeners.flatMap { $0.routes.values.compactMap { $0 as? any GracefulService } }
        log.info("stopping: \(activity.count) sessions and transfers under way, \(grace.inWords) of grace")
        // A cancelled task could wait for nothing any more, and there are goodbyes to be said.
        await Task { [activity, loop, box] in
            await withDiscardingTaskGroup { group in
                for listener in listeners { group.addTask { await listener.stopAccepting() } }
                for forward in forwards.stop() { group.addTask { await forward.stopAccepting() } }
            }
            // Only now, so that whoever is told to go finds nobody here on coming back.
            for service in services { service.beginGracefulShutdown() }
            box?.beginGracefulShutdown()
            await withDiscardingTaskGroup { group in
                for listener in listeners { group.addTask { await listener.closeUngraceful() } }
            }
            await Self.waitUntilIdle(activity, for: grace, loop)
            guard activity.count > 0 else { return }
            try? await Deadline.run(Self.farewell, time: loop) {
                for listener in listeners { await listener.closeSessions() }
            }
        }.value
    }

    private static func waitUntilIdle(_ activity: Activity, for limit: Duration, _ time: any TimeSource) async {
        guard limit > .zero else { return }
        try? await Deadline.run(limit, time: time) { await activity.waitUntilIdle() }
    }
}

/// The forwards that are bound, including those that were bound late.
private final class RunningForwards: Sendable {
    private struct State {
        var forwards: [ListeningForward]
        var isStopped = false
    }

    private let state: Mutex<State>

    init(_ forwards: [ListeningForward]) {
        state = Mutex(State(forwards: forwards))
    }

    var all: [ListeningForward] { state.withLock { $0.forwards } }

    /// Adds one, unless the host is stopping.
    func add(_ forward: ListeningForward) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            state.forwards.append(forward)
            return true
        }
    }

    /// All of them; none is added any more.
    func stop() -> [ListeningForward] {
        state.withLock { state in
            state.isStopped = true
            return state.forwards
        }
    }
}
