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
    }

    /// Streams are what it lives on.
    public var requires: Capabilities { .streams }

    private let allowed: Set<TCPEndpoint>
    private let connectTimeout: Duration
    private let loop: EventLoop
    private let log: Log
    private let sessions = StreamSessions()

    /// How long a stream may take to say where it wants to go, and one that was refused to let go.
    private static let headTimeout = Duration.seconds(10)

    /// Makes the service.
    public init(_ options: Options, loop: EventLoop, log: Log = Log()) {
        allowed = Set(options.allow)
        connectTimeout = options.connectTimeout ?? .seconds(10)
        self.loop = loop
        self.log = log.named("forward")
    }

    /// Serves the streams of one peer until it closes.
    public func serve(_ socket: any Socket, target: Target) async {
        await sessions.serve(socket) {
            guard (try? await socket.receive()) != nil else { return }
            await socket.close(.unsupported, reason: "this route takes streams, not messages")
        } stream: { [self] stream in
            await forward(stream, peer: socket.info.remoteAddress)
        }
    }

    /// Lets the connections under way finish, then closes with 1001.
    public func beginGracefulShutdown() {
        sessions.beginGracefulShutdown()
    }

    private func forward(_ stream: any Stream, peer: SocketAddress?) async {
        do {
            let (address, first) = try await readRequest(stream)
            let connection = try await connect(address)
            log.debug("\(peer.map { "\($0)" } ?? "a peer") → \(address)")
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
            log.debug("refused \(peer.map { "\($0)" } ?? "a peer"): \(refusal)")
            await refuse(stream, refusal)
        } catch {
            await stream.reset(0)
        }
    }

    /// Reads the head of a stream; returns the address and the bytes that came behind it.
    private func readRequest(_ stream: any Stream) async throws -> (TCPEndpoint, Bytes) {
        let head = try await withDeadline(Self.headTimeout, loop) {
            var reader = ForwardHeader.RequestReader()
            while true {
                if let text = try reader.next() { return (text, reader.rest) }
                guard let bytes = try await stream.read(upTo: Relay.chunk) else {
                    throw ForwardHeader.Malformed(description: "the stream ended inside the address")
                }
                reader.feed(bytes)
            }
        } onMalformed: { malformed in
            ForwardHeader.Refusal(.badTarget, malformed.description)
        }
        do {
            return (try TCPEndpoint(head.0), head.1)
        } catch {
            throw ForwardHeader.Refusal(.badTarget, error.description)
        }
    }

    private func connect(_ address: TCPEndpoint) async throws -> TCPConnection {
        guard allowed.contains(address) else {
            throw ForwardHeader.Refusal(.refused, "\(address) is not on the list of what may be reached")
        }
        do {
            return try await TCPConnection.connect(
                to: address.host, port: address.port, loop: loop, timeout: connectTimeout)
        } catch {
            switch error.code {
            case .timedOut: throw ForwardHeader.Refusal(.tooSlow, error.message)
            case .resources: throw ForwardHeader.Refusal(.tryAgainLater, error.message)
            case .cancelled: throw ForwardHeader.Refusal(.goingAway, "the host is stopping")
            default: throw ForwardHeader.Refusal(.nobodyThere, error.message)
            }
        }
    }

    private func refuse(_ stream: any Stream, _ refusal: ForwardHeader.Refusal) async {
        do {
            try await stream.write(ForwardHeader.answer(refusal))
            try await stream.finish()
            // A reset at once could overtake the answer, so what the opener sent ahead is read away until it lets go.
            try await withDeadline(Self.headTimeout, loop) {
                while try await stream.read(upTo: Relay.chunk) != nil {}
            } onMalformed: {
                $0
            }
        } catch {
            await stream.reset(refusal.code.rawValue)
        }
    }

    private func withDeadline<Result: Sendable>(
        _ limit: Duration, _ time: any TimeSource, _ body: @escaping @Sendable () async throws -> Result,
        onMalformed: (ForwardHeader.Malformed) -> any Error
    ) async throws -> Result {
        do {
            return try await Deadline.run(limit, time: time, body)
        } catch let malformed as ForwardHeader.Malformed {
            throw onMalformed(malformed)
        } catch is Deadline.Passed {
            throw ForwardHeader.Refusal(.tooSlow, "no address came within \(limit)")
        }
    }
}
