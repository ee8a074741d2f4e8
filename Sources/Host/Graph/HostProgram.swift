internal import Synchronization
public import TransportIO
public import TransportKit
internal import TransportTLS

/// What `transportkit` does with a config file, for programs that do the same with plug-ins of their own.
public enum HostProgram {
    /// Adds the plug-ins of a program to the standard ones.
    public typealias Extension = @Sendable (inout Registry, EventLoop) throws -> Void

    /// Makes everything a config file asks for, and starts none of it.
    ///
    /// - Returns: what it would be, in words.
    /// - Throws: ``ConfigErrors`` for what is wrong with the file.
    public static func check(
        configFile path: String, extending: @escaping Extension = { _, _ in }
    ) async throws -> String {
        try await withLoop { loop in
            let configuration = try HostConfiguration(file: path)
            return try graph(configuration, loop: loop, log: Log(), extending: extending).summary
        }
    }

    /// Runs what a config file asks for until SIGTERM, SIGINT or SIGHUP, the second of which ends the process at once.
    ///
    /// - Parameters:
    ///   - path: the config file.
    ///   - trace: the file to which what carriers see is written; nil for what the config file says.
    ///   - extending: adds the plug-ins of the program; called once, before the file is read.
    ///   - ready: called once, when every address is bound.
    /// - Throws: ``ConfigErrors`` for what is wrong with the file, else why an address could not be bound.
    public static func run(
        configFile path: String, trace: String? = nil, extending: @escaping Extension = { _, _ in },
        ready: @escaping @Sendable () -> Void
    ) async throws {
        try await withStopSignals { stop in
            try await run(HostConfiguration(file: path), trace: trace, stop: stop, extending: extending) { _ in ready()
            }
        }
    }

    /// What hears signals before there is a host.
    private static let early = Mutex<(stop: StopRequest, signals: StopSignals)?>(nil)

    /// Hears signals from now on, for a program that has something to do before it runs a host; that is then stopped at once.
    package static func hearSignals() {
        early.withLock { early in
            guard early == nil else { return }
            early = makeSignals()
        }
    }

    private static func makeSignals() -> (stop: StopRequest, signals: StopSignals) {
        let stop = StopRequest()
        return (stop, StopSignals { stop.ask() })
    }

    /// Hears signals from the very beginning: also a start that is interrupted takes down what it has made, and ends well.
    static func withStopSignals(_ body: (StopRequest) async throws -> Void) async throws {
        let (stop, signals) =
            early.withLock { early in
                defer { early = nil }
                return early
            } ?? makeSignals()
        defer { withExtendedLifetime(signals) {} }
        try await body(stop)
    }

    static func run(
        _ configuration: HostConfiguration, trace: String? = nil, allowsAnyPort: Bool = false, stop: StopRequest,
        extending: @escaping Extension = { _, _ in }, ready: @escaping @Sendable (HostRunner.Bound) -> Void
    ) async throws {
        try await withLoops { loop, listenerLoops in
            let log = Log(level: configuration.logLevel, sink: StandardErrorLog())
            let directory = configuration.stateDirectory(StateDirectory.environment)
            if let directory {
                TLSFile.sweep(directory.path, names: [FilePathMemory.fileName, NetworkKey.fileName])
            }
            let keeping = Keeping(directory, time: loop, log: log.named("host"))
            let network = await NetworkIdentity.watch(
                loop: loop, hash: keeping.hash, memory: keeping.memory, log: log)
            defer { network.stop() }
            let tracer = try (trace ?? configuration.tracePath).map { path throws(TraceError) in
                try TraceWriter(path, log: log.named("host"))
            }
            let graph = try graph(
                configuration, loop: loop, listenerLoops: listenerLoops, log: log, network: network,
                memory: keeping.memory, observer: tracer,
                allowsAnyPort: allowsAnyPort, extending: extending)
            let runner = HostRunner(
                graph, state: configuration.stateDirectory(StateDirectory.environment), loop: loop, log: log)
            stop.then { runner.beginGracefulShutdown() }
            defer { stop.forget() }
            let control =
                try stop.isAsked
                ? nil : control(configuration, directory, runner, network, keeping, log: log.named("host"))
            defer { control?.stop() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    await network.watch(live: { runner.liveAddresses }, wake: { await runner.wake() })
                }
                defer { group.cancelAll() }
                try await runner.run(whenBound: ready)
            }
            await keeping.file?.flush()
            await tracer?.flush()
        }
    }

    /// Opens the control socket. Where it has its usual place and cannot be there, the host runs without.
    private static func control(
        _ configuration: HostConfiguration, _ directory: StateDirectory?, _ runner: HostRunner,
        _ network: NetworkIdentity, _ keeping: Keeping, log: Log
    ) throws(ControlError) -> ControlServer? {
        guard let path = configuration.controlPath(StateDirectory.environment) else { return nil }
        let desk = ControlDesk(
            runner: runner, network: network, keeping: keeping,
            config: configuration.file.map(ControlPath.wholePath) ?? "a text",
            state: directory?.path)
        let isChosen = configuration.chosenControlPath != nil
        do throws(ControlError) {
            if !isChosen { try? directory?.make() }
            return try ControlServer(path) { desk.answer($0) }
        } catch {
            guard !isChosen, !error.isTaken else { throw error }
            log.warning("`transportkit status` will not find this host: \(error)")
            return nil
        }
    }

    static func graph(
        _ configuration: HostConfiguration, loop: EventLoop, listenerLoops: ListenerLoops = ListenerLoops(), log: Log,
        network: NetworkIdentity? = nil, memory: any PathMemory = InProcessPathMemory(),
        observer: (any PathObserver)? = nil, allowsAnyPort: Bool = false, extending: Extension
    ) throws -> HostGraph {
        var registry = try StandardRegistry.make(loop: loop, listenerLoops: listenerLoops)
        try extending(&registry, loop)
        var context = BuildContext(
            executor: loop, time: loop, log: log, memory: memory, network: { network?.key })
        context.observer = observer
        return try HostGraph(configuration, registry: registry, context: context, allowsAnyPort: allowsAnyPort)
    }

    /// Runs `body` on a loop of its own.
    static func withLoop<Result: Sendable>(
        _ body: @escaping @Sendable (EventLoop) async throws -> Result
    ) async throws -> Result {
        try await withLoops { loop, _ in try await body(loop) }
    }

    /// Runs `body` on a loop of its own, with others for its listeners.
    private static func withLoops<Result: Sendable>(
        _ body: @escaping @Sendable (EventLoop, ListenerLoops) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "transportkit")
        let listenerLoops = ListenerLoops()
        let result = await Task(executorPreference: loop) { () async -> Swift.Result<Result, any Error> in
            do {
                return .success(try await body(loop, listenerLoops))
            } catch {
                return .failure(error)
            }
        }.value
        await listenerLoops.shutdown()
        await loop.shutdown()
        return try result.get()
    }
}

extension HostGraph {
    /// What the graph holds, in words: `1 listener, 2 forwards`.
    var summary: String {
        func count(_ number: Int, _ what: String) -> String { "\(number) \(what)\(number == 1 ? "" : "s")" }
        let parts = [
            (listeners.count, "listener"), (carriers.count, "carrier"), (forwards.count, "forward"),
        ].filter { $0.0 > 0 }.map(count)
        return (parts + (box == nil ? [] : ["1 box"])).joined(separator: ", ")
    }
}
