public import TransportIO
public import TransportKit
internal import TransportTLS

/// RFC 6455 over TCP, with TLS for `wss` (R25).
///
/// Control and bulk messages are binary messages, and so are unreliable ones, since the wire has no datagrams. Streams
/// come from a multiplexer where one was given and the peer has it too; else a socket carries messages and text.
/// Compression is never offered and never accepted (R29).
public struct WebSocketTransport: Transport {
    /// `websocket`.
    public let name = TransportName.webSocket

    let loop: EventLoop
    let multiplexer: (any StreamMultiplexer)?
    let log: Log
    let metrics: any MetricsSink
    let room = LoopRoom()

    /// Makes a transport whose sockets live on `loop`.
    ///
    /// - Parameters:
    ///   - loop: the one loop of its connections and listeners.
    ///   - multiplexer: gives the sockets streams; without one they have messages and text alone.
    ///   - log: hears of refused connections and failed handshakes.
    ///   - metrics: counts open sockets.
    public init(
        loop: EventLoop, multiplexer: (any StreamMultiplexer)? = nil, log: Log = Log(),
        metrics: any MetricsSink = NoMetrics()
    ) {
        self.loop = loop
        self.multiplexer = multiplexer
        self.log = log.named("websocket")
        self.metrics = metrics
    }

    /// Streams where a multiplexer was given, else text.
    public var capabilities: Capabilities { multiplexer == nil ? .text : .streams }

    /// Opens a WebSocket.
    public func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        let dial = WebSocketDial(self, url: url, options: options)
        let socket = try await dial.run()
        guard let flight = options.firstFlight else { return socket }
        do throws(Close) {
            try await socket.send(Message(flight))
            return socket
        } catch {
            throw error.cause ?? TransportError(.pathReset, "the socket ended before its first message: \(error)")
        }
    }

    /// Binds a port.
    public func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        try await WebSocketListener.bind(self, endpoint: endpoint, options: options)
    }

    /// Wraps a socket where both ends have the multiplexer.
    func wrap(_ socket: WebSocketSocket, isDialer: Bool, limits: Limits) async -> any Socket {
        guard let multiplexer, socket.info.capabilities.contains(.streams) else { return socket }
        return await multiplexer.wrap(socket, isDialer: isDialer, limits: limits)
    }
}
