import Foundation
import QUICTransport
import TransportIO
import TransportKit
import TransportTLS
import WebSocketTransport

/// A wire between a transport of ours and a program of `Peers/`.
enum Wire: String, Sendable, CaseIterable, CustomStringConvertible {
    case quic = "QUIC"
    case webSocket = "WebSocket"
    case webSocketOverTLS = "WebSocket over TLS"

    var description: String { rawValue }

    var program: String { self == .quic ? "quic_peer.py" : "websocket_peer.py" }
    var scheme: Endpoint.Scheme { self == .webSocket ? .ws : .wss }

    func makeTransport(_ loop: EventLoop, multiplexer: (any StreamMultiplexer)? = nil) -> any Transport {
        switch self {
        case .quic: QUICTransport(loop: loop)
        case .webSocket, .webSocketOverTLS: WebSocketTransport(loop: loop, multiplexer: multiplexer)
        }
    }
}

/// Which end of the connection TransportKit is.
enum Role: String, Sendable, CaseIterable, CustomStringConvertible {
    case dialer
    case listener

    var description: String { "as \(rawValue)" }
}

/// One test's transport, and what it is set to.
struct Rig {
    var dialOptions = DialOptions()
    var listenOptions = ListenOptions()
    let wire: Wire
    let transport: any Transport
    private let loop: EventLoop

    /// Makes the transport on a loop of its own, hands it to `body`, and takes everything down.
    static func with(
        _ wire: Wire, multiplexer: (EventLoop) -> (any StreamMultiplexer)? = { _ in nil },
        _ body: (inout Rig) async throws -> Void
    ) async throws {
        let loop = try EventLoop(name: "interop")
        do {
            var rig = Rig(wire: wire, transport: wire.makeTransport(loop, multiplexer: multiplexer(loop)), loop: loop)
            if wire != .webSocket {
                rig.listenOptions.security = ServerSecurity(identity: try certificate.get())
                rig.dialOptions.security = ClientSecurity(trust: .file(try certificate.get().certificate))
            }
            rig.listenOptions.route = { $0.path == "/echo" ? .accept : .refuse(.nobodyThere) }
            try await body(&rig)
        } catch {
            await loop.shutdown()
            throw error
        }
        await loop.shutdown()
    }

    private init(wire: Wire, transport: any Transport, loop: EventLoop) {
        self.wire = wire
        self.transport = transport
        self.loop = loop
    }

    /// The certificate that both kinds of listener show: made here, read by Python.
    static let certificate = Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "transportkit-interop-\(getpid())")
        return try SelfSignedCertificate.makeIfMissing(names: ["127.0.0.1", "localhost"], directory: folder.path)
    }

    /// The arguments with which a Python server shows that certificate, where the wire has TLS.
    func serverArguments() throws -> [String] {
        guard wire != .webSocket else { return [] }
        let files = try Self.certificate.get()
        return ["--certificate", files.certificate, "--key", files.key]
    }

    /// The arguments with which a Python client trusts that certificate, where the wire has TLS.
    func clientArguments() throws -> [String] {
        wire == .webSocket ? [] : ["--trust", try Self.certificate.get().certificate]
    }

    /// The URL of a service on this machine.
    func url(port: UInt16, target: Target = .echo) -> ServiceURL {
        ServiceURL(Endpoint(scheme: wire.scheme, host: .ipv4(.loopback), port: port), target: target)
    }

    /// Binds a free port.
    func listen() async throws -> any Listener {
        try await transport.listen(url(port: 0).endpoint, options: listenOptions)
    }

    /// Opens a socket between TransportKit in `role` and a Python program that is given `arguments`, and lets both ends
    /// finish.
    func play(_ role: Role, _ arguments: [String], _ body: @escaping @Sendable (any Socket) async throws -> Void)
        async throws
    {
        switch role {
        case .dialer:
            try await Peer.withPython(wire.program, ["server"] + arguments + serverArguments()) { peer in
                let port = try await peer.port()
                try await settle(peer) {
                    try await perform(body, transport.dial(url(port: port), options: dialOptions))
                }
            }
        case .listener:
            let listener = try await listen()
            let words = ["client", "--port", "\(listener.endpoint.port)"]
            try await Peer.withPython(wire.program, words + arguments + clientArguments()) { peer in
                try await settle(peer) { try await perform(body, listener.accept()) }
            }
            await listener.close()
        }
    }

    private func perform(_ body: (any Socket) async throws -> Void, _ socket: any Socket) async throws {
        do {
            try await body(socket)
        } catch {
            // The peer must not wait for an end that has given up.
            await socket.close(.internalError, reason: "the test failed")
            throw error
        }
        await socket.close()
    }

    /// Runs this end beside the peer; a peer that fails ends this end too, and what both have to say is thrown.
    private func settle(_ peer: Peer, _ here: @escaping @Sendable () async throws -> Void) async throws {
        let end = Task.immediate { try await here() }
        var failures: [String] = []
        do { try await peer.finish() } catch {
            failures.append("\(error)")
            end.cancel()
        }
        do { try await end.value } catch { failures.append("this end: \(error)") }
        if !failures.isEmpty { throw InteropFailure(failures.joined(separator: "\n")) }
    }
}

extension Target {
    /// The one target that has a route.
    static let echo = Target("/echo") ?? .root
}
