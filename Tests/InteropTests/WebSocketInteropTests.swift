import Foundation
import MuxCarrier
import Testing
import TransportIO
import TransportKit

/// WebSocket, plain and over TLS, against the Python package `websockets`.
@Suite(.enabled(if: Peers.areExpected, "no .venv/bin/python; bin/setup test makes it"), .serialized)
struct WebSocketInteropTests {
    private static let wires: [Wire] = [.webSocket, .webSocketOverTLS]

    // R32, R33.
    @Test(
        .timeLimit(.minutes(1)), arguments: ["messages", "many", "text", "fragments", "ping"], Role.allCases)
    func `websockets finds its scenario answered as it should be`(scenario: String, role: Role) async throws {
        for wire in Self.wires {
            try await Rig.with(wire) { rig in
                try await rig.play(role, ["--scenario", scenario]) { socket in
                    #expect(await answer(socket) == Close(.normal, reason: "done", origin: .remote))
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: Drive.webSocket, Role.allCases)
    func `websockets answers as it should`(drive: Drive, role: Role) async throws {
        for wire in Self.wires {
            try await Rig.with(wire) { rig in
                try await rig.play(role, ["--scenario", "answer"]) { try await drive.run($0) }
            }
        }
    }

    // R30, R32, R120.
    @Test(.timeLimit(.minutes(1)), arguments: [1000, 1008, 4410] as [UInt64], Role.allCases)
    func `A close carries its code and reason both ways`(code: UInt64, role: Role) async throws {
        let words = ["--code", "\(code)", "--reason", "Grüße"]
        let code = CloseCode(rawValue: code)
        try await Rig.with(.webSocket) { rig in
            try await rig.play(role, ["--scenario", "close"] + words) { socket in
                #expect(await answer(socket) == Close(code, reason: "Grüße", origin: .remote))
            }
            try await rig.play(role, ["--scenario", "answer"] + words) { socket in
                #expect(await socket.close(code, reason: "Grüße") == Close(code, reason: "Grüße", origin: .local))
            }
        }
    }

    // R28, R33, B09: the peer says nothing for twice the idle limit and only answers pings.
    @Test(.timeLimit(.minutes(1)), arguments: Role.allCases)
    func `Pings that are answered keep a silent path open`(role: Role) async throws {
        try await Rig.with(.webSocket) { rig in
            rig.dialOptions.keepalive = Keepalive(interval: .milliseconds(200), idleTimeout: .seconds(1))
            rig.listenOptions.keepalive = rig.dialOptions.keepalive
            try await rig.play(role, ["--scenario", "quiet"]) { socket in
                #expect(await answer(socket) == Close(.normal, reason: "done", origin: .remote))
            }
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [("too-big", CloseCode.tooBig), ("bad-text", .badText)], Role.allCases)
    func `What must not be sent ends the socket with its code`(
        scenario: (name: String, code: CloseCode), role: Role
    ) async throws {
        try await Rig.with(.webSocket) { rig in
            try await rig.play(role, ["--scenario", scenario.name]) { socket in
                #expect(await answer(socket).code == scenario.code)
            }
        }
    }

    // R6, R32: the Python end refuses the message; its code arrives.
    @Test(.timeLimit(.minutes(1)), arguments: Role.allCases)
    func `The 1009 of a peer with a smaller limit arrives`(role: Role) async throws {
        try await Rig.with(.webSocket) { rig in
            rig.dialOptions.limits.maxMessageBytes = 4 << 20
            rig.listenOptions.limits.maxMessageBytes = 4 << 20
            try await rig.play(role, ["--scenario", "over-limit"]) { socket in
                try await socket.send(Message(Bytes(repeating: 1, count: 2 << 20)))
                let close = await #expect(throws: Close.self) { try await socket.receive() }
                #expect(close?.code == .tooBig)
                #expect(close?.origin == .remote)
            }
        }
    }

    // R29: offered compression is declined; a sub-protocol that only one end has leaves a socket without streams.
    @Test(.timeLimit(.minutes(1)))
    func `Compression and foreign sub-protocols are declined`() async throws {
        try await Rig.with(.webSocket, multiplexer: { YamuxMultiplexer(executor: $0, time: $0) }) { rig in
            let offers = ["--offer-compression", "--subprotocol", "chat", "--subprotocol", "graphql-ws"]
            for offer in [[], offers] {
                try await rig.play(.listener, ["--scenario", "text"] + offer) { socket in
                    #expect(!socket.info.capabilities.contains(.streams))
                    #expect(await answer(socket) == Close(.normal, reason: "done", origin: .remote))
                }
            }
            try await rig.play(.dialer, ["--scenario", "text", "--subprotocol", "tk-mux.1"]) { socket in
                #expect(!socket.info.capabilities.contains(.streams))
                #expect(await answer(socket) == Close(.normal, reason: "done", origin: .remote))
            }
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `A certificate that nobody vouches for is refused by either end`() async throws {
        try await Rig.with(.webSocketOverTLS) { rig in
            let server = ["server", "--scenario", "answer"] + (try rig.serverArguments())
            try await Peer.withPython("websocket_peer.py", server) { peer in
                let url = rig.url(port: try await peer.port())
                let error = await #expect(throws: TransportError.self) {
                    try await rig.transport.dial(url, options: DialOptions())
                }
                #expect(error?.code == .certificateUnknownIssuer)
                // The same service, trusted: the refusal cost it nothing.
                try await Drive.messages.run(rig.transport.dial(url, options: rig.dialOptions))
                try await peer.finish()
            }
            let listener = try await rig.listen()
            let client = ["client", "--port", "\(listener.endpoint.port)", "--scenario"]
            try await Peer.withPython("websocket_peer.py", client + ["untrusted", "--tls"]) { try await $0.finish() }
            try await Peer.withPython("websocket_peer.py", client + ["answer"] + rig.clientArguments()) { peer in
                try await Drive.messages.run(listener.accept())
                try await peer.finish()
            }
            await listener.close()
        }
    }

    // docs/protocol.md §4: a refusal is an HTTP status that stands for the close code.
    @Test(
        .timeLimit(.minutes(1)),
        arguments: [
            (CloseCode.badTarget, 400), (.credentialRejected, 401), (.refused, 403), (.nobodyThere, 404), (.busy, 503),
            (.tryAgainLater, 503), (.internalError, 500),
        ] as [(CloseCode, Int)])
    func `A listener refuses with the status that stands for its code`(code: CloseCode, status: Int) async throws {
        try await Rig.with(.webSocket) { rig in
            rig.listenOptions.route = { _ in .refuse(code) }
            let listener = try await rig.listen()
            let client = ["client", "--port", "\(listener.endpoint.port)"]
            let words = ["--scenario", "refused", "--status", "\(status)"]
            try await Peer.withPython("websocket_peer.py", client + words) { try await $0.finish() }
            await listener.close()
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [403, 404, 503])
    func `A dialer reports the status of a refusal`(status: Int) async throws {
        try await Rig.with(.webSocket) { rig in
            let server = ["server", "--scenario", "answer", "--status", "\(status)"]
            try await Peer.withPython("websocket_peer.py", server) { peer in
                let error = await #expect(throws: TransportError.self) {
                    try await rig.transport.dial(rig.url(port: peer.port()), options: rig.dialOptions)
                }
                #expect(error?.code == .upgradeRefused)
                #expect(error?.number == UInt64(status))
                try await peer.finish()
            }
        }
    }
}
