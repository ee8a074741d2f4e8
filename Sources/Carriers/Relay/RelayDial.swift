internal import TransportKit

/// What both roles do alike to reach a room.
enum RelayDial {
    /// Refuses a URL that is more than an origin, and a transport without text.
    static func check(_ url: ServiceURL, _ transport: any Transport) throws(TransportError) {
        guard url.target == .root else {
            throw TransportError(
                .misuse, "the URL of a relay has no path and no query; write \(url.endpoint) alone")
        }
        guard transport.capabilities.contains(.text) else {
            throw TransportError(
                .unsupported,
                "a relay needs text messages, and the transport '\(transport.name)' has \(transport.capabilities)")
        }
    }

    static func url(_ endpoint: Endpoint, _ join: RelayJoin) -> ServiceURL {
        guard let target = Target(join.path) else { preconditionFailure("the path of a join is a target") }
        return ServiceURL(endpoint, target: target)
    }

    /// Gives a socket the shape of the room, if it has one.
    static func shaped(
        _ socket: any Socket, _ settings: RelaySettings, secret: RelaySecret, limits: Limits,
        executor: any TaskExecutor, time: any TimeSource
    ) -> any Socket {
        guard let shape = settings.shape else { return socket }
        let shaper = Shaper(
            shape, secret: secret, messageLimit: settings.maxFrameBytes, name: Shaper.drawName())
        return ShapedSocket(
            socket, shaper: shaper, interval: shape.interval, limits: limits, executor: executor, time: time)
    }

    static func options(_ options: DialOptions, maxFrameBytes: Int) -> DialOptions {
        var options = options
        options.limits.maxMessageBytes = min(options.limits.maxMessageBytes, maxFrameBytes)
        options.firstFlight = nil
        return options
    }
}
