import Testing

/// Tickets and early data in a config file (R17).
@Suite struct EarlyDataConfigTests {
    @Test(arguments: [
        ("{ tickets: true, earlyData: true }", nil),
        ("{ tickets: false }", nil),
        (
            "{ tickets: false, earlyData: true }",
            "carriers.a.tls.earlyData: needs tickets; leave 'tickets: false' out, or this"
        ),
        ("{ earlyData: 1 }", "carriers.a.tls.earlyData: must be true or false, and is '1'"),
    ])
    func `A carrier's early data needs tickets`(tls: String, complaint: String?) async throws {
        #expect(try await saysOfCarrier("tls: \(tls)") == complaint)
    }

    @Test func `A carrier's early data needs QUIC`() async throws {
        let problem = "carriers.a.tls.earlyData: needs the transport 'quic', which alone can send early data"
        #expect(try await saysOfCarrier("transports: [websocket], tls: { earlyData: true }") == problem)
    }

    @Test(arguments: [
        ("", "tickets: true, earlyData: true", nil),
        (
            "", "tickets: false, earlyData: true",
            "listeners.a.tls.earlyData: needs tickets; leave 'tickets: false' out, or this"
        ),
        (
            "transports: [websocket], ", "earlyData: true",
            "listeners.a: 'tls.earlyData' needs the transport 'quic', which alone can send early data"
        ),
    ])
    func `A listener's early data needs tickets and QUIC`(
        transports: String, tls: String, complaint: String?
    ) async throws {
        let listener =
            "{ url: \"wss://127.0.0.1:9000\", \(transports)tls: { selfSigned: a, directory: /tmp/none, \(tls) }, "
            + "routes: { /echo: { service: echo } } }"
        #expect(try await says("listeners: { a: \(listener) }") == complaint)
    }

    private func saysOfCarrier(_ options: String) async throws -> String? {
        try await says(
            "carriers: { a: { kind: direct, url: \"wss://a.example\", \(options) } }\n"
                + "forwards: [{ listen: \"tcp://127.0.0.1:9001\", carrier: a, to: \"tcp://127.0.0.1:9000\" }]")
    }

    /// The one complaint about a text, without its place in the file.
    private func says(_ text: String) async throws -> String? {
        guard let complaints = try await complaints(text) else { return nil }
        #expect(complaints.count == 1)
        return complaints.first.map { $0.split(separator: ": ", maxSplits: 1).last.map(String.init) ?? $0 }
    }
}
