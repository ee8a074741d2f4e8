/// What a factory may use: the loop, the clocks, where to log, and the other things that were named.
///
/// It is handed to one factory call. References are resolved through it, so that the host can check the whole graph
/// before anything binds.
public struct BuildContext: Sendable {
    /// The loop of the chain: an actor of the plug-in runs on it, so that a message climbs without changing threads.
    public var executor: any SerialExecutor & TaskExecutor
    /// The clocks.
    public var time: any TimeSource
    /// Where to log.
    public var log: Log
    /// Where to count.
    public var metrics: any MetricsSink
    /// What networks are remembered by.
    public var memory: any PathMemory
    /// The dials under way that are only to learn, of every carrier that is made with this context.
    public var learning = LearningDials()
    /// Who is told of what carriers see on their paths, if anybody is.
    public var observer: (any PathObserver)?
    /// The opaque name of the network the machine is on, or nil where it cannot be told (R58).
    public var network: @Sendable () -> String?
    /// The carrier of that name, for a carrier that is built over another.
    public var carrier: @Sendable (String) throws -> any Carrier
    /// The carrier of that name, for whoever may close it before its own end: nothing else may be built over it or over
    /// what it is built over.
    public var ownCarrier: @Sendable (String) throws -> any Carrier
    /// The transport of that name.
    public var transport: @Sendable (String) throws -> any Transport
    /// The race policy of that name.
    public var racePolicy: @Sendable (String) throws -> any RacePolicy
    /// The demotion policy of that name.
    public var demotionPolicy: @Sendable (String) throws -> any DemotionPolicy
    /// The file of the key of that name, for a plug-in that proves who this end is; `device` is the machine's own.
    public var keyFile: @Sendable (String) throws -> String
    /// What a link that the plug-in dials is for.
    public var role: LinkRole
    /// A file named in the config, as a path that can be opened: relative names start at the config file's folder.
    public var path: @Sendable (String) -> String

    /// Makes a context that knows no other thing by name.
    public init(
        executor: any SerialExecutor & TaskExecutor, time: any TimeSource, log: Log = Log(),
        metrics: any MetricsSink = NoMetrics(), memory: any PathMemory = InProcessPathMemory(),
        network: @escaping @Sendable () -> String? = { nil }
    ) {
        self.executor = executor
        self.time = time
        self.log = log
        self.metrics = metrics
        self.memory = memory
        self.network = network
        carrier = { name in throw RegistryError("there is no carrier '\(name)'") }
        ownCarrier = { name in throw RegistryError("there is no carrier '\(name)'") }
        transport = { name in throw RegistryError("there is no transport '\(name)'") }
        racePolicy = { name in throw RegistryError("there is no race policy '\(name)'") }
        demotionPolicy = { name in throw RegistryError("there is no demotion policy '\(name)'") }
        keyFile = { name in throw RegistryError("there is no key '\(name)'") }
        role = .peer
        path = { $0 }
    }
}
