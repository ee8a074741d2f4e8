internal import DirectCarrier
internal import MemoryTransport
internal import MuxCarrier
internal import QUICTransport
public import TransportIO
public import TransportKit
internal import WebSocketTransport

/// The plug-ins of this repository. The only file that names them all.
public enum StandardRegistry {
    /// Makes a registry with every plug-in of this repository; more may be registered in it.
    ///
    /// - Parameters:
    ///   - loop: where all of them run.
    ///   - listenerLoops: where listeners run too, if a config file asks for several loops. Whoever makes them shuts them
    ///     down.
    public static func make(
        loop: EventLoop, listenerLoops: ListenerLoops = ListenerLoops()
    ) throws(RegistryError) -> Registry {
        var registry = Registry()
        try addTransports(to: &registry, loop: loop, listenerLoops: listenerLoops)
        try addCarriers(to: &registry, loop: loop)
        try addServices(to: &registry, loop: loop)
        try addPolicies(to: &registry)
        return registry
    }

    private static func addTransports(
        to registry: inout Registry, loop: EventLoop, listenerLoops: ListenerLoops
    ) throws(RegistryError) {
        try registry.register(transport: "quic") { options, context in
            let more = (try options.decode(QUICOptions.self).loops?.value ?? 1) - 1
            return QUICTransport(loop: loop, log: context.log, metrics: context.metrics) { () throws(TransportError) in
                try listenerLoops.first(more)
            }
        }
        try registry.register(transport: "websocket") { options, context in
            _ = try options.decode(NoOptions.self)
            let multiplexer = YamuxMultiplexer(executor: loop, time: context.time)
            return WebSocketTransport(
                loop: loop, multiplexer: multiplexer, log: context.log, metrics: context.metrics)
        }
        let network = MemoryNetwork(time: loop)
        try registry.register(transport: "memory") { options, _ in
            _ = try options.decode(NoOptions.self)
            return MemoryTransport(network: network)
        }
    }

    private static func addCarriers(to registry: inout Registry, loop: EventLoop) throws(RegistryError) {
        try registry.register(carrier: "relay") { try RelayOptions.carrier($0, context: $1, loop: loop) }
        try registry.register(carrier: "direct") { options, context in
            let parts = try DirectParts(options, context: context)
            return try DirectCarrier(
                url: parts.url, transports: parts.transports, options: parts.dial, race: parts.race,
                demotion: parts.demotion, context: context)
        }
        try registry.register(carrier: "mux") { options, context in
            let over = try options.decode(MuxOptions.self).over
            do {
                return MuxCarrier(over: try context.carrier(over), executor: context.executor, time: context.time)
            } catch let error as RegistryError {
                throw options.invalid("over", error.description)
            }
        }
        try registry.register(carrier: "fallback") { try FallbackOptions.carrier($0, context: $1) }
        try registry.register(carrier: "tunnel") { options, context in
            try TunnelOptions.makeCarrier(options, context)
        }
        try registry.register(carrier: "noise") { options, context in
            try NoiseOptions.makeCarrier(options, context)
        }
    }

    private static func addServices(to registry: inout Registry, loop: EventLoop) throws(RegistryError) {
        try registry.register(service: "relay") { try RelayServiceOptions.service($0, context: $1) }
        try registry.register(service: "echo") { options, _ in
            _ = try options.decode(NoOptions.self)
            return EchoService()
        }
        try registry.register(service: "forward") { options, context in
            let options = try options.decode(ForwardService.Options.self)
            return ForwardService(options, loop: loop, log: context.log)
        }
        let door = DoorServices()
        try registry.register(service: "door.app") { options, context in try door.app(options, context) }
        try registry.register(service: "door.box") { options, context in try door.box(options, context) }
    }

    private static func addPolicies(to registry: inout Registry) throws(RegistryError) {
        try registry.register(racePolicy: "head-start") { _, _ in HeadStartRacePolicy() }
        try registry.register(racePolicy: "adaptive") { _, _ in AdaptiveRacePolicy() }
        try registry.register(racePolicy: "parallel") { _, _ in ParallelRacePolicy() }
        try registry.register(racePolicy: "ordered") { _, _ in OrderedRacePolicy() }
        try registry.register(demotionPolicy: "day") { _, _ in DayDemotionPolicy() }
        try registry.register(demotionPolicy: "evidence") { _, _ in EvidenceDemotionPolicy() }
        try registry.register(demotionPolicy: "none") { _, _ in NoDemotionPolicy() }
    }
}

/// The options of `mux`.
private struct MuxOptions: Decodable {
    /// The carrier that gets streams.
    var over: String

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case over
    }
}

/// The options of `quic`.
private struct QUICOptions: Decodable {
    /// On how many loops its listeners run.
    var loops: LoopCount?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case loops
    }
}

/// The options of a plug-in that has none.
private struct NoOptions: Decodable {
    private enum CodingKeys: CodingKey, CaseIterable {}

    init(from decoder: any Decoder) throws {
        _ = try decoder.container(keyedBy: CodingKeys.self)
    }
}
