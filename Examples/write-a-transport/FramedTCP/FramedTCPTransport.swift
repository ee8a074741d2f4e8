public import TransportIO
public import TransportKit

/// What a config file may say about the transport: its own `Decodable` struct.
public struct FramedTCPOptions: Decodable, Sendable {
    /// How much one read takes at most, in bytes; 65,536 where nothing is said.
    public var readBytes: Int?

    /// Makes the options in code.
    public init(readBytes: Int? = nil) { self.readBytes = readBytes }
}

/// TCP with length-prefixed frames: messages, no streams, no TLS.
public struct FramedTCPTransport: Transport {
    /// The name in the registry, in the config file and in the status.
    public let name: TransportName = "framed-tcp"
    /// Messages alone.
    public let capabilities: Capabilities = []
    private let loop: EventLoop
    private let readBytes: Int

    /// Makes the transport; opens nothing.
    public init(loop: EventLoop, readBytes: Int = 65_536) {
        self.loop = loop
        self.readBytes = readBytes
    }

    /// The factory for a registry: `try registry.register(transport: "framed-tcp", FramedTCPTransport.make)`.
    @Sendable public static func make(_ source: any OptionsSource, _ context: BuildContext) throws -> any Transport {
        let readBytes = try source.decode(FramedTCPOptions.self).readBytes ?? 65_536
        guard (1...1 << 20).contains(readBytes) else { throw source.invalid("readBytes", "1 to 1048576 are allowed") }
        return FramedTCPTransport(loop: try context.eventLoop(), readBytes: readBytes)
    }

    /// Connects and names the target. A listener that does not like it answers with a close.
    public func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        try refuseTLS(url.endpoint)
        let connection = try await TCPConnection.connect(
            to: url.endpoint.host, port: url.endpoint.port, loop: loop, timeout: options.limits.handshakeTimeout)
        if let claim = options.claim, !claim.take() {
            await connection.close()
            throw TransportError(.superseded, "another dial had already won")
        }
        let wire = FramedTCPWire(connection: connection, limits: options.limits, readBytes: readBytes)
        try await wire.write(options.firstFlight.map { [.message($0)] } ?? [], after: url.target)
        return wire.socket(target: url.target, parser: wire.makeParser())
    }

    /// Binds the first address of the host.
    public func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        try refuseTLS(endpoint)
        let address = try await Resolver.address(of: endpoint.host, port: endpoint.port)
        let listener = try await TCPListener.bind(address, loop: loop)
        return FramedTCPListener(listener, endpoint: endpoint, options: options, readBytes: readBytes)
    }

    private func refuseTLS(_ endpoint: Endpoint) throws(TransportError) {
        guard endpoint.scheme == .wss else { return }
        throw TransportError(.unsupported, "\(name) has no TLS; write ws:// instead of wss://")
    }
}
