internal import MuxCarrier
internal import QUICTransport
internal import TransportIO
internal import TransportKit
internal import WebSocketTransport

/// The transports on one loop, and how a measuring command dials with them.
struct Wires {
    let loop: EventLoop

    init() throws {
        loop = try EventLoop(name: "bench")
    }

    func transport(_ name: String) throws -> any Transport {
        switch name {
        case "quic":
            return QUICTransport(loop: loop, log: Log(), metrics: NoMetrics())
        case "websocket":
            return WebSocketTransport(
                loop: loop, multiplexer: YamuxMultiplexer(executor: loop, time: loop), log: Log(), metrics: NoMetrics())
        case "websocket-plain":
            return WebSocketTransport(loop: loop, multiplexer: nil, log: Log(), metrics: NoMetrics())
        default:
            throw Arguments.Invalid(description: "--transport is quic, websocket or websocket-plain")
        }
    }

    /// Takes `URL [--trust FILE] [--transport NAME]` from the command line and dials.
    func dial(_ arguments: inout Arguments) async throws -> any Socket {
        try await dialer(&arguments)()
    }

    /// The same, as something that can be called again.
    func dialer(_ arguments: inout Arguments) throws -> @Sendable () async throws -> any Socket {
        let wire = try transport(arguments.flag("transport") ?? "quic")
        var options = DialOptions()
        if let file = try arguments.flag("trust") { options.security.trust = .file(file) }
        let url = try ServiceURL(arguments.required("URL"))
        return { [options] in try await wire.dial(url, options: options) }
    }

    /// Runs `body` on the loop, so that a call on a socket changes no thread.
    func onLoop<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) async throws -> Result {
        try await Task(executorPreference: loop) { try await body() }.value
    }
}
