internal import MemoryTransport
public import TransportIO
public import TransportKit

/// The plug-ins of this repository. The only file that names them all.
public enum StandardRegistry {
    /// Makes a registry with every plug-in of this repository; more may be registered in it.
    ///
    /// - Parameter loop: where all of them run.
    public static func make(loop: EventLoop) throws(RegistryError) -> Registry {
        var registry = Registry()
        try addTransports(to: &registry, loop: loop)
        try addServices(to: &registry, loop: loop)
        try addPolicies(to: &registry)
        return registry
    }

    private static func addTransports(to registry: inout Registry, loop: EventLoop) throws(RegistryError) {
        let network = MemoryNetwork(time: loop)
        try registry.register(transport: "memory") { options, _ in
            _ = try options.decode(NoOptions.self)
            return MemoryTransport(network: network)
        }
    }

    private static func addServices(to registry: inout Registry, loop: EventLoop) throws(RegistryError) {
        try registry.register(service: "echo") { options, _ in
            _ = try options.decode(NoOptions.self)
            return EchoService()
        }
        try registry.register(service: "forward") { options, context in
            let options = try options.decode(ForwardService.Options.self)
            return ForwardService(options, loop: loop, log: context.log)
        }
    }

    private static func addPolicies(to registry: inout Registry) throws(RegistryError) {
        try registry.register(racePolicy: "head-start") { _, _ in HeadStartRacePolicy() }
        try registry.register(racePolicy: "parallel") { _, _ in ParallelRacePolicy() }
        try registry.register(racePolicy: "ordered") { _, _ in OrderedRacePolicy() }
        try registry.register(demotionPolicy: "day") { _, _ in DayDemotionPolicy() }
        try registry.register(demotionPolicy: "none") { _, _ in NoDemotionPolicy() }
    }
}

/// The options of a plug-in that has none.
private struct NoOptions: Decodable {
    private enum CodingKeys: CodingKey, CaseIterable {}

    init(from decoder: any Decoder) throws {
        _ = try decoder.container(keyedBy: CodingKeys.self)
    }
}
