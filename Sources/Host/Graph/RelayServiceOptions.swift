internal import RelayService
internal import TransportKit

/// The options of the service `relay`; what is left out is as the wire's contract has it.
struct RelayServiceOptions: Decodable {
    var trustProxy: Bool?
    var streamsPerRoom: Count?
    var sockets: Count?
    var socketsPerAddress: Count?
    var frameBytes: Count?
    var frameBurst: Count?
    var framesPerSecond: Count?
    var byteBurst: Count?
    var bytesPerSecond: Count?
    var backlogBytes: Count?
    var attempts: Count?
    var attemptWindow: TimeLimit?
    var attemptSlots: Count?
    var heartbeat: TimeLimit?
    var turnSpread: Duration?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case trustProxy, streamsPerRoom, sockets, socketsPerAddress, frameBytes, frameBurst, framesPerSecond, byteBurst
        case bytesPerSecond, backlogBytes, attempts, attemptWindow, attemptSlots, heartbeat, turnSpread
    }

    /// Makes the service.
    static func service(_ source: any OptionsSource, context: BuildContext) throws -> any Service {
        let options = try source.decode(RelayServiceOptions.self)
        return RelayService(
            limits: options.limits, trustsProxy: options.trustProxy ?? false, executor: context.executor,
            time: context.time, log: context.log)
    }

    private var limits: RelayLimits {
        var limits = RelayLimits()
        limits.streamsPerRoom = streamsPerRoom?.value ?? limits.streamsPerRoom
        limits.sockets = sockets?.value ?? limits.sockets
        limits.socketsPerAddress = socketsPerAddress?.value ?? limits.socketsPerAddress
        limits.frameBytes = frameBytes?.value ?? limits.frameBytes
        limits.frameBurst = frameBurst?.value ?? limits.frameBurst
        limits.framesPerSecond = framesPerSecond?.value ?? limits.framesPerSecond
        limits.byteBurst = byteBurst?.value ?? limits.byteBurst
        limits.bytesPerSecond = bytesPerSecond?.value ?? limits.bytesPerSecond
        limits.backlogBytes = backlogBytes?.value ?? limits.backlogBytes
        limits.attempts = attempts?.value ?? limits.attempts
        limits.attemptWindow = attemptWindow?.value ?? limits.attemptWindow
        limits.attemptSlots = attemptSlots?.value ?? limits.attemptSlots
        limits.heartbeat = heartbeat?.value ?? limits.heartbeat
        limits.turnSpread = turnSpread ?? limits.turnSpread
        return limits
    }
}
