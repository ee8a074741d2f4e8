internal import Synchronization
public import TransportKit

/// A network inside the process: ``MemoryTransport`` dials and listens on it, and a test scripts what is wrong with it.
///
/// Nothing runs in the background. What is under way has the instant at which it is due, and whoever waits for it waits
/// for that instant; with ``/TransportKit/ManualTime`` and one executor everything happens in the same order every time. Any thread
/// may call any member.
public final class MemoryNetwork: Sendable {
    /// A dial that somebody made.
    public struct Dial: Sendable, Hashable {
        /// The transport that dialled.
        public let transport: TransportName
        /// What was dialled.
        public let url: ServiceURL
        /// When.
        public let start: Instant
    }

    private struct Place: Hashable {
        let transport: TransportName
        let host: Host
        let port: UInt16
    }

    private struct WeakListener {
        weak var listener: MemoryListener?
    }

    private struct WeakPath {
        let transport: TransportName
        weak var path: MemoryPath?
    }

    private struct State {
        var listeners: [Place: WeakListener] = [:]
        var paths: [WeakPath] = []
        var faults: [TransportName: MemoryFaults] = [:]
        var dials: [Dial] = []
        var watching: [Signal] = []
        var nextPort: UInt16 = 49_152
    }

    let time: any TimeSource
    let executor: (any TaskExecutor)?
    private let state = Mutex(State())

    /// Makes a network without listeners and without faults.
    ///
    /// - Parameters:
    ///   - time: the clock by which things take their time.
    ///   - executor: where the alarms of delayed things wake; give the executor of the test, so that no other thread has a
    ///     part in it.
    public init(time: any TimeSource, executor: (any TaskExecutor)? = nil) {
        self.time = time
        self.executor = executor
    }

    /// Every dial so far, oldest first.
    public var dials: [Dial] { state.withLock { $0.dials } }

    /// How many sockets of a transport are open, both ends of a path counted as one.
    public func openPaths(of transport: TransportName) -> Int {
        paths(of: transport).count { !$0.hasEnded }
    }

    /// What is wrong with the ways of a transport.
    public func faults(of transport: TransportName = .memory) -> MemoryFaults {
        state.withLock { $0.faults[transport] ?? MemoryFaults() }
    }

    /// Changes what is wrong with the ways of a transport, for open sockets and dials under way too.
    public func change(_ transport: TransportName = .memory, _ change: (inout MemoryFaults) -> Void) {
        let (faults, watching) = state.withLock { state in
            change(&state.faults[transport, default: MemoryFaults()])
            return (state.faults[transport] ?? MemoryFaults(), state.watching)
        }
        for signal in watching { signal.signal() }
        for path in paths(of: transport) { path.apply(faults) }
    }

    /// Ends every open socket of a transport at once, as a lost path does: both ends see 1006.
    public func cut(_ transport: TransportName = .memory) {
        for path in paths(of: transport) { path.cut() }
    }

    /// Makes both ends of every open socket of a transport vanish for each other: nothing arrives any more and nobody
    /// is told. Each end finds out by its idle limit. New dials are not touched.
    public func vanish(_ transport: TransportName = .memory) {
        for path in paths(of: transport) { path.vanish() }
    }

    /// Moves every open socket of a transport to another network, as QUIC does where the machine's address changes.
    public func migrate(_ transport: TransportName = .memory) {
        for path in paths(of: transport) { path.migrate() }
    }

    private func paths(of transport: TransportName) -> [MemoryPath] {
        state.withLock { $0.paths.filter { $0.transport == transport }.compactMap(\.path) }
    }

    // MARK: - For the transport

    func record(_ dial: Dial) {
        state.withLock { $0.dials.append(dial) }
    }

    func add(_ path: MemoryPath, of transport: TransportName) {
        state.withLock { state in
            state.paths.removeAll { $0.path == nil }
            state.paths.append(WeakPath(transport: transport, path: path))
        }
    }

    /// Binds a listener; the port is chosen where 0 was asked for.
    func bind(
        _ endpoint: Endpoint, transport: TransportName, make: (Endpoint) -> MemoryListener
    ) throws(TransportError) -> MemoryListener {
        let bound = state.withLock { state -> MemoryListener? in
            var endpoint = endpoint
            if endpoint.port == 0 {
                endpoint.port = state.nextPort
                state.nextPort = state.nextPort == .max ? 49_152 : state.nextPort + 1
            }
            let place = Place(transport: transport, host: endpoint.host, port: endpoint.port)
            guard state.listeners[place]?.listener == nil else { return nil }
            let listener = make(endpoint)
            state.listeners[place] = WeakListener(listener: listener)
            return listener
        }
        guard let bound else { throw TransportError(.addressInUse, "\(endpoint) is taken by another listener") }
        return bound
    }

    func release(_ endpoint: Endpoint, transport: TransportName) {
        let place = Place(transport: transport, host: endpoint.host, port: endpoint.port)
        state.withLock { $0.listeners[place] = nil }
    }

    /// Who listens there; a listener on every address of the machine answers for each of them.
    func listener(at endpoint: Endpoint, transport: TransportName) -> MemoryListener? {
        let hosts = [endpoint.host, .ipv4(.any), .ipv6(.any, scope: nil)]
        return state.withLock { state in
            for host in hosts {
                let place = Place(transport: transport, host: host, port: endpoint.port)
                if let listener = state.listeners[place]?.listener { return listener }
            }
            return nil
        }
    }

    /// Gives the signal whenever the faults of a transport change, until it is unwatched.
    func watch(_ signal: Signal) {
        state.withLock { $0.watching.append(signal) }
    }

    func unwatch(_ signal: Signal) {
        state.withLock { state in state.watching.removeAll { $0 === signal } }
    }
}

/// Gives a signal at an instant, unless it is cancelled before.
struct Alarm {
    private let task: Task<Void, Never>

    /// The sleeper is registered with the clock before this returns, so that simulated time cannot move past it.
    init(_ signal: Signal, at deadline: Instant, time: any TimeSource, executor: (any TaskExecutor)?) {
        task = Task.immediate(executorPreference: executor) {
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            signal.signal()
        }
    }

    func cancel() { task.cancel() }
}
