public import TransportIO
public import TransportKit

/// Connects each stream of a peer to the TCP address that its head names, if that is allowed, and relays the bytes.
public final class ForwardService: GracefulService {
    /// What the service may be told.
    public struct Options: Sendable, Decodable {
        /// The addresses that may be reached, and no others.
        public var allow: [TCPEndpoint]
        /// How long a connection may take to stand; without it 10 s.
        public var connectTimeout: Duration?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case allow, connectTimeout
        }

        /// Makes options.
        public init(allow: [TCPEndpoint], connectTimeout: Duration? = nil) {
            self.allow = allow
            self.connectTimeout = connectTimeout
        }

        /// Reads options; a `connectTimeout` in which nothing connects is an error.
        public init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            allow = try values.decode([TCPEndpoint].self, forKey: .allow)
            connectTimeout = try values.decodeIfPresent(Duration.self, forKey: .connectTimeout)
            if let connectTimeout, connectTimeout < .milliseconds(100) {
                throw decoder.invalid("connectTimeout", "must be at least 100ms")
            }
        }
    }

    /// Streams are what it lives on.
    public var requires: Capabilities { .streams }

    /// What may be reached, and the same by the text that openers usually write, which saves reading it each time.
    private let allowed: Set<TCPEndpoint>
    private let texts: [String: TCPEndpoint]
    /// What may be reached by a name.
    private let services: [String: TCPEndpoint]
    private let connectTimeout: Duration
    private let loop: EventLoop
    private let log: Log
    private let sessions = StreamSessions()

    /// How long a stream may take to say where it wants to go, and one that was refused to let go.
    private static let headTimeout = Duration.seconds(10)

    /// Makes the service.
    public init(_ options: Options, loop: EventLoop, log: Log = Log()) {
        allowed = Set(options.allow)
        texts = Dictionary(options.allow.map { ("\($0)", $0) }) { first, _ in first }
        services = [:]
        connectTimeout = options.connectTimeout ?? .seconds(10)
        self.loop = loop
        self.log = log.named("forward")
    }

    /// Makes the service of a box: what can be reached has a name, and nothing else can.
    init(services: [String: TCPEndpoint], loop: EventLoop, log: Log = Log()) {
        allowed = []
        texts = [:]
        self.services = services
        connectTimeout = .seconds(10)
        self.loop = loop
        self.log = log.named("forward")
    }

    /// Serves the streams of one peer until it closes.
    public func serve(_ socket: any Socket, target: Target) async {
        let peer = socket.info.remoteAddress.map { "\($0)" } ?? "a peer"
        let limits = (
            head: Timeouts(limit: Self.headTimeout, time: loop), connect: Timeouts(limit: connectTimeout, time: loop)
        )
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await limits.head.run() }
            group.addTask { await limits.connect.run() }
            await sessions.serve(socket) {
                guard (try? await socket.receive()) != nil else { return }
                await socket.close(.unsupported, reason: "this route takes streams, not messages")
            } stream: { [self] stream in
                await forward(stream, peer: peer, head: limits.head, connect: limits.connect)
            }
            group.cancelAll()
        }
    }

    /// Lets the connections under way finish, then closes with 1001.
    public func beginGracefulShutdown() {
        sessions.beginGracefulShutdown()
    }

    private func forward(_ stream: any Stream, peer: String, head: Timeouts, connect limit: Timeouts) async {
        do {
            let (target, first) = try await readRequest(stream, head)
            guard target != .list else { return try await list(stream) }
            let address = try self.address(of: target)
            let connection = try await connect(address, limit)
            log.debug("\(peer) → \(address)")
            do {
                try await stream.write(ForwardHeader.answer(nil))
            } catch {
                await connection.reset()
                throw error
            }
            if case .broken(let error) = await Relay.run(connection, stream, preamble: { first }) {
                log.debug("\(address): reset, \(error)")
            }
        } catch let refusal as ForwardHeader.Refusal {
            log.debug("refused \(peer): \(refusal)")
            await refuse(stream, refusal, head)
        } catch {
            await stream.reset(0)
        }
    }

    /// Says which services there are.
    private func list(_ stream: any Stream) async throws {
        try await stream.write(ForwardHeader.answer(nil))
        try await stream.write(Bytes(services.keys.sorted().map { $0 + "\n" }.joined()))
        try await stream.finish()
    }

    private func address(of target: ForwardTarget) throws -> TCPEndpoint {
        switch target {
        case .address(let address):
            guard allowed.contains(address) else {
                throw ForwardHeader.Refusal(.refused, "\(address) is not on the list of what may be reached")
            }
            return address
        case .service(let name):
            guard let address = services[name] else {
                throw ForwardHeader.Refusal(.nobodyThere, "there is no service '\(name)' here")
            }
            return address
        case .list:
            throw ForwardHeader.Refusal(.badTarget, "a list is no address")
        }
    }

    /// Reads the head of a stream; returns what is asked for and the bytes that came behind it.
    private func readRequest(_ stream: any Stream, _ limit: Timeouts) async throws -> (ForwardTarget, Bytes) {
        do {
            return try await limit.run {
                var reader = ForwardHeader.RequestReader()
                while true {
                    if let text = try reader.next() {
                        let known = texts[text].map(ForwardTarget.address)
                        return (try known ?? ForwardTarget(wire: text), reader.rest)
                    }
                    guard let bytes = try await stream.read(upTo: Relay.chunk) else {
                        throw ForwardHeader.Malformed(description: "the stream ended inside the address")
                    }
                    reader.feed(bytes)
                }
            } fire: {
                await stream.reset(CloseCode.tooSlow.rawValue)
            }
        } catch let error as ForwardHeader.Malformed {
            throw ForwardHeader.Refusal(.badTarget, error.description)
        } catch let error as ServiceURL.InvalidURL {
            throw ForwardHeader.Refusal(.badTarget, error.description)
        }
    }

    private func connect(_ address: TCPEndpoint, _ limit: Timeouts) async throws -> TCPConnection {
        do {
            return try await dial(address, limit)
        } catch let error as TransportError {
            switch error.code {
            case .timedOut: throw ForwardHeader.Refusal(.tooSlow, error.message)
            case .resources: throw ForwardHeader.Refusal(.tryAgainLater, error.message)
            case .cancelled: throw ForwardHeader.Refusal(.goingAway, "the host is stopping")
            default: throw ForwardHeader.Refusal(.nobodyThere, error.message)
            }
        } catch is Timeouts.Passed {
            throw ForwardHeader.Refusal(.tooSlow, "connecting to \(address) took longer than \(connectTimeout.inWords)")
        }
    }

    /// Connects. An address that is written out needs no names and no race between addresses, which cost several tasks.
    private func dial(_ address: TCPEndpoint, _ limit: Timeouts) async throws -> TCPConnection {
        guard address.host.isLiteral else {
            return try await TCPConnection.connect(
                to: address.host, port: address.port, loop: loop, timeout: connectTimeout)
        }
        let only = try await Resolver.address(of: address.host, port: address.port)
        let attempt = Task(executorPreference: loop) { [loop] () async -> Result<TCPConnection, TransportError> in
            do throws(TransportError) {
                return .success(try await TCPConnection.connect(to: only, loop: loop))
            } catch {
                return .failure(error)
            }
        }
        return try await limit.run {
            try await withTaskCancellationHandler {
                try await attempt.value.get()
            } onCancel: {
                attempt.cancel()
            }
        } fire: {
            attempt.cancel()
        }
    }

    private func refuse(_ stream: any Stream, _ refusal: ForwardHeader.Refusal, _ limit: Timeouts) async {
        do {
            try await stream.write(ForwardHeader.answer(refusal))
            try await stream.finish()
            // A reset at once could overtake the answer, so what the opener sent ahead is read away until it lets go.
            try await limit.run {
                while try await stream.read(upTo: Relay.chunk) != nil {}
            } fire: {
                await stream.reset(refusal.code.rawValue)
            }
        } catch {
            await stream.reset(refusal.code.rawValue)
        }
    }
}
