import Testing
import TransportIO
import TransportKit

/// QUIC against `aioquic`, with the framing written a second time in Python.
@Suite(.enabled(if: Peers.areExpected, "no .venv/bin/python; bin/setup test makes it"), .serialized)
struct QUICInteropTests {
    /// What Python drives; the ones that end with another code than 1000 stand below.
    static let drivenByPython = [
        "messages", "many", "bulk", "datagrams", "streams", "hundred-streams", "reset", "long-forms", "pieces",
        "bulk-reset", "bulk-stopped", "unknown-stream", "key-update",
    ]

    // R5 to R9, R12, R120; docs/protocol.md §3.
    @Test(.timeLimit(.minutes(1)), arguments: drivenByPython, Role.allCases)
    func `aioquic finds its scenario answered as it should be`(scenario: String, role: Role) async throws {
        try await Rig.with(.quic) { rig in
            try await rig.play(role, ["--scenario", scenario]) { socket in
                #expect(await answer(socket) == Close(.normal, reason: "done", origin: .remote))
            }
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: Drive.quic, Role.allCases)
    func `aioquic answers as it should`(drive: Drive, role: Role) async throws {
        try await Rig.with(.quic) { rig in
            try await rig.play(role, ["--scenario", "answer"]) { try await drive.run($0) }
        }
    }

    // R11, R120: the same number and words at the other end, whoever closes.
    @Test(.timeLimit(.minutes(1)), arguments: [1000, 4408] as [UInt64], Role.allCases)
    func `A close carries its code and reason both ways`(code: UInt64, role: Role) async throws {
        let words = ["--code", "\(code)", "--reason", "Grüße"]
        let code = CloseCode(rawValue: code)
        try await Rig.with(.quic) { rig in
            try await rig.play(role, ["--scenario", "close"] + words) { socket in
                #expect(await answer(socket) == Close(code, reason: "Grüße", origin: .remote))
            }
            try await rig.play(role, ["--scenario", "answer"] + words) { socket in
                #expect(await socket.close(code, reason: "Grüße") == Close(code, reason: "Grüße", origin: .local))
            }
        }
    }

    // R6: 2^40 bytes, and one byte too many, are refused at their length.
    @Test(.timeLimit(.minutes(1)), arguments: ["over-long", "over-long-bulk"], Role.allCases)
    func `An over-long message ends the session with 1009`(scenario: String, role: Role) async throws {
        try await Rig.with(.quic) { rig in
            try await rig.play(role, ["--scenario", scenario]) { socket in
                #expect(await answer(socket).code == .tooBig)
            }
        }
    }

    // R12.
    @Test(.timeLimit(.minutes(1)), arguments: Role.allCases)
    func `The end of the control stream ends the session`(role: Role) async throws {
        try await Rig.with(.quic) { rig in
            try await rig.play(role, ["--scenario", "end-of-control"]) { _ = await answer($0) }
        }
    }

    // R5: 4400 and 4404; R41: a probe is neither a session nor a refusal.
    @Test(
        .timeLimit(.minutes(1)),
        arguments: [
            "empty-target", "long-target", "slashless-target", "latin-target", "spaced-target", "fragment-target",
            "no-route", "probe",
        ])
    func `A listener refuses what it has to and serves the next client`(scenario: String) async throws {
        try await Rig.with(.quic) { rig in
            let listener = try await rig.listen()
            let client = ["client", "--port", "\(listener.endpoint.port)"] + (try rig.clientArguments())
            try await Peer.withPython(rig.wire.program, client + ["--scenario", scenario]) { try await $0.finish() }
            // Whatever was handed out would come first here.
            let near = try await rig.transport.dial(
                rig.url(port: listener.endpoint.port), options: rig.dialOptions)
            let far = try await listener.accept()
            try await near.send(Message(Bytes("next")))
            #expect(try await far.receive() == [Message(Bytes("next"))])
            await near.close()
            await far.close()
            await listener.close()
        }
    }

    // R5.
    @Test(.timeLimit(.minutes(1)))
    func `A dialer sees the 4404 of a service without its route`() async throws {
        try await Rig.with(.quic) { rig in
            try await Peer.withPython("quic_peer.py", ["server", "--scenario", "refuse"] + rig.serverArguments()) {
                peer in
                let nowhere = try #require(Target("/nowhere?key=1"))
                let socket = try await rig.transport.dial(
                    rig.url(port: peer.port(), target: nowhere), options: rig.dialOptions)
                await #expect(throws: Close(.nobodyThere, reason: "no such route", origin: .remote)) {
                    try await socket.receive()
                }
                await socket.close()
                try await peer.finish()
            }
        }
    }

    // R3, R35.
    @Test(.timeLimit(.minutes(1)))
    func `Without a common protocol neither end opens`() async throws {
        try await Rig.with(.quic) { rig in
            let server = ["server", "--scenario", "refuse", "--alpn", "h3"]
            try await Peer.withPython("quic_peer.py", server + rig.serverArguments()) { peer in
                let error = await #expect(throws: TransportError.self) {
                    try await rig.transport.dial(rig.url(port: peer.port()), options: rig.dialOptions)
                }
                #expect(error?.code == .noCommonProtocol)
                try await peer.finish()
            }
            let listener = try await rig.listen()
            let client = ["client", "--scenario", "refused-handshake", "--alpn", "h3"]
            let port = ["--port", "\(listener.endpoint.port)"]
            try await Peer.withPython("quic_peer.py", client + port + rig.clientArguments()) { peer in
                try await peer.finish()
                // RFC 7301 §3.2: the alert no_application_protocol, 120, as RFC 9001 §4.8 carries it.
                #expect(peer.text.contains("refused: 0x178"))
            }
            await listener.close()
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `A certificate that nobody vouches for is refused by either end`() async throws {
        try await Rig.with(.quic) { rig in
            try await Peer.withPython("quic_peer.py", ["server", "--scenario", "refuse"] + rig.serverArguments()) {
                peer in
                let error = await #expect(throws: TransportError.self) {
                    try await rig.transport.dial(rig.url(port: peer.port()), options: DialOptions())
                }
                #expect(error?.code == .certificateUnknownIssuer)
                try await peer.finish()
            }
            let listener = try await rig.listen()
            let client = ["client", "--scenario", "refused-handshake", "--port", "\(listener.endpoint.port)"]
            try await Peer.withPython("quic_peer.py", client) { peer in
                try await peer.finish()
                #expect(peer.text.contains("refused: "))
            }
            await listener.close()
        }
    }
}
