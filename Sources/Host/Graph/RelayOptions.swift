internal import RelayCarrier
internal import TransportIO
internal import TransportKit
internal import TransportTLS
internal import WebSocketTransport

/// The options of the carrier `relay`.
struct RelayOptions: Decodable {
    var url: DialledURL
    var secretFile: String
    var info: String?
    var backoff: BackoffOptions?
    var turnSpread: Duration?
    var youngDial: Duration?
    var maxFrameBytes: Count?
    var shape: ShapeOptions?
    var tls: ClientTLSOptions?
    var limits: LimitsOptions?
    var keepalive: KeepaliveOptions?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case url, secretFile, info, backoff, turnSpread, youngDial, maxFrameBytes, shape, tls, limits, keepalive
    }

    /// How long to wait after failures.
    struct BackoffOptions: Decodable {
        var base: TimeLimit?
        var cap: TimeLimit?

        enum CodingKeys: String, CodingKey, CaseIterable { case base, cap }
    }

    /// The constant shape; what is left out is as the default has it.
    struct ShapeOptions: Decodable {
        var frameBytes: Count?
        var interval: TimeLimit?

        enum CodingKeys: String, CodingKey, CaseIterable { case frameBytes, interval }
    }

    /// Makes the carrier.
    static func carrier(
        _ source: any OptionsSource, context: BuildContext, loop: EventLoop
    ) throws -> any Carrier {
        let options = try source.decode(RelayOptions.self)
        let secret = try RelayParts.secret(options.secretFile, source, context)
        if let frameBytes = options.shape?.frameBytes?.value, !(128...65_536).contains(frameBytes) {
            throw source.invalid("shape.frameBytes", "must be from 128 to 65536")
        }
        let dial = try RelayParts.dial(options.url, options.tls, options.limits, options.keepalive, source, context)
        // Without streams, for which the relay has no room: its words are text.
        let transport = WebSocketTransport(loop: loop, log: context.log, metrics: context.metrics)
        do throws(TransportError) {
            return try RelayCarrier(
                url: options.url.url, secret: secret, transport: transport, options: dial, settings: options.settings,
                executor: context.executor, time: context.time, log: context.log)
        } catch {
            throw source.invalid("url", error.message)
        }
    }

    private var settings: RelaySettings {
        var settings = RelaySettings()
        settings.info = info ?? settings.info
        settings.turnSpread = turnSpread
        settings.youngDial = youngDial ?? settings.youngDial
        settings.maxFrameBytes = maxFrameBytes?.value ?? settings.maxFrameBytes
        settings.backoff = Backoff(
            base: backoff?.base?.value ?? settings.backoff.base, cap: backoff?.cap?.value ?? settings.backoff.cap,
            resetAfter: settings.backoff.resetAfter)
        settings.shape = shape.map { options in
            var shape = RelayShape()
            shape.frameBytes = options.frameBytes?.value ?? shape.frameBytes
            shape.interval = options.interval?.value ?? shape.interval
            return shape
        }
        return settings
    }
}

/// What the parts of a relay have in common where a config file names them.
enum RelayParts {
    /// Reads the secret of a room.
    static func secret(_ name: String, _ source: any OptionsSource, _ context: BuildContext) throws -> RelaySecret {
        if let problem = FileCheck.problem(naming: name) { throw source.invalid("secretFile", problem) }
        let text: Bytes
        do throws(TransportError) {
            text = try TLSFile.read(context.path(name), what: "the relay's secret", isSecret: true)
        } catch {
            throw source.invalid("secretFile", error.message)
        }
        guard let secret = String(validating: text).flatMap({ RelaySecret($0) }) else {
            throw source.invalid(
                "secretFile",
                "holds no secret; at least \(RelaySecret.leastLength) bytes are needed, as hexadecimal digits or as base64url"
            )
        }
        return secret
    }

    /// How the relay is dialled.
    static func dial(
        _ url: DialledURL, _ tls: ClientTLSOptions?, _ limits: LimitsOptions?, _ keepalive: KeepaliveOptions?,
        _ source: any OptionsSource, _ context: BuildContext
    ) throws -> DialOptions {
        var dial = DialOptions()
        limits?.apply(to: &dial.limits)
        keepalive?.apply(to: &dial.keepalive)
        dial.tickets = tls?.tickets ?? true
        if tls?.earlyData == true { throw source.invalid("tls.earlyData", EarlyDataOption.needsQUIC) }
        dial.security = try DirectParts.security(DirectOptions(url: url, tls: tls), source, context)
        return dial
    }
}
