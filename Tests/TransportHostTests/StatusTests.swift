import Foundation
import Glibc
import Testing
import TransportHost
import TransportIO
import TransportKit

/// `status` and `explain`, with the built program.
@Suite(.timeLimit(.minutes(2))) struct StatusTests {
    static let secret = "marker-of-a-secret"

    /// Runs a service and a client of it, and `body` once the client is connected.
    func withPair(_ body: @escaping @Sendable (_ client: String, _ program: Program) async throws -> Void) async throws
    {
        try await withTemporaryFolder { (folder: String) async throws in
            try write(
                """
                state: "\(folder)/server-state"
                listeners:
                  peer:
                    url: "wss://127.0.0.1:PORT"
                    tls: { selfSigned: "127.0.0.1", directory: "\(folder)/cert" }
                    routes: { /echo: { service: forward, allow: ["tcp://127.0.0.1:1"] } }
                """.replacingOccurrences(of: "PORT", with: "\(try await freePort())"), to: "\(folder)/server.yaml")
            let server = "\(folder)/server.yaml"
            let port = try #require(
                try String(contentsOfFile: server, encoding: .utf8).split(separator: "\"").first {
                    $0.hasPrefix("wss://")
                }?.split(separator: ":").last)
            let client = "\(folder)/client.yaml"
            try write(
                """
                state: "\(folder)/state"
                carriers:
                  main:
                    kind: direct
                    url: "wss://127.0.0.1:\(port)/echo?token=\(Self.secret)"
                    tls: { trust: "\(folder)/cert/certificate.pem" }
                forwards:
                  - { listen: "tcp://127.0.0.1:\(try await freePort())", carrier: main, to: "tcp://127.0.0.1:1" }
                """, to: client)
            try await Program.whileRunning(["run", server]) { (running: Program) async throws in
                #expect(try await running.lines(until: "ready") != nil)
                let status = try await Program.run(["status", server])
                #expect(status.code == 0)
                #expect(status.output.contains("peer      QUIC, WebSocket"))
                try await Program.whileRunning(["run", client]) { (running: Program) async throws in
                    #expect(try await running.lines(until: "ready") != nil)
                    try await body(client, running)
                }
            }
        }
    }

    /// A port that was free a moment ago.
    func freePort() async throws -> UInt16 {
        try await withLoop { loop in
            let listener = try await TCPListener.bind(.loopback(), loop: loop)
            defer { Task { await listener.close() } }
            return listener.localAddress.port
        }
    }

    func report<Report: Decodable>(_ words: [String], as: Report.Type) async throws -> Report {
        let ended = try await Program.run(words)
        #expect(ended.code == 0, "\(ended.errors)")
        return try JSONDecoder().decode(Report.self, from: Data(ended.output.utf8))
    }

    // R137, B23, B72
    @Test func `A running host says how it travels and why, and no secret`() async throws {
        try await withPair { client, program in
            var status = try await report(["status", client, "--json"], as: StatusReport.self)
            while status.carriers.first?.state != "connected" {
                status = try await report(["status", client, "--json"], as: StatusReport.self)
            }
            #expect(status.carriers.map(\.text) == ["Connected · QUIC"])
            #expect(status.carriers.map(\.transport) == ["quic"])
            #expect(status.pid == program.id)
            #expect(status.forwards.map(\.state) == ["listening"])
            #expect(status.config == client)

            let explained = try await report(["explain", "main", client, "--json"], as: ExplainReport.self)
            #expect(explained.race == "head-start")
            #expect(explained.establishments.first?.winner == "quic")
            let won = explained.establishments.first?.candidates.first
            #expect(won?.attempts.map { $0.address.hasPrefix("127.0.0.1:") } == [true])
            #expect((won?.tlsMilliseconds ?? 0) > 0)

            for words in [["status", client], ["explain", "main", client]] {
                for ended in [try await Program.run(words), try await Program.run(words + ["--json"])] {
                    #expect(ended.code == 0)
                    #expect(!ended.output.contains(Self.secret))
                    #expect(!ended.errors.contains(Self.secret))
                }
            }
            let text = try await Program.run(["explain", "main", client])
            #expect(text.output.contains("why     QUIC opened first after"))
            let unknown = try await Program.run(["explain", "mian", client])
            #expect(unknown.code == 1)
            #expect(unknown.errors == "transportkit: there is no carrier 'mian'; did you mean 'main'? there are main\n")

            // A second one does not start, and the first is unharmed.
            let second = try await Program.run(["run", client])
            #expect(second.code == 1)
            #expect(second.errors.contains("another transportkit answers at"))
            #expect(try await Program.run(["status", client]).code == 0)

            // Killed, it leaves its socket behind, and the next start takes the place.
            program.signal(SIGKILL)
            #expect(await program.exitCode() == -SIGKILL)
            let gone = try await Program.run(["status", client])
            #expect(gone.code == 1)
            #expect(gone.errors.hasPrefix("transportkit: no transportkit runs \(client): nobody answers at "))
            try await Program.whileRunning(["run", client]) { (running: Program) async throws in
                #expect(try await running.lines(until: "ready") != nil)
                #expect(try await Program.run(["status", client]).code == 0)
            }
        }
    }

    // R116, R139, R140
    @Test func `A fallback says in the log and the status who took over and why`() async throws {
        try await withPair { client, _ in
            let old = try String(contentsOfFile: client, encoding: .utf8)
            let fallback = client.replacingOccurrences(of: "client.yaml", with: "fallback.yaml")
            let port = try await freePort()
            try write(
                old.replacingOccurrences(of: "  main:", with: "  spare:")
                    .replacingOccurrences(of: "/state", with: "/fallback-state")
                    .replacingOccurrences(of: "tcp://127.0.0.1:", with: "tcp://127.0.0.2:")
                    .replacingOccurrences(
                        of: "carriers:\n",
                        with: """
                            carriers:
                              home: { kind: direct, url: "wss://127.0.0.1:\(port)/echo" }
                              main: { kind: fallback, primary: home, secondary: spare }

                            """), to: fallback)
            let log = open(fallback + ".log", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            defer { close(log) }
            try await Program.whileRunning(["run", fallback], errors: log, limit: .seconds(60)) {
                (running: Program) async throws in
                #expect(try await running.lines(until: "ready") != nil)
                var status = try await report(["status", fallback, "--json"], as: StatusReport.self)
                func carrier(_ name: String) -> StatusReport.Carrier? { status.carriers.first { $0.name == name } }
                while carrier("main")?.state != "connected" {
                    status = try await report(["status", fallback, "--json"], as: StatusReport.self)
                }
                #expect(carrier("home")?.state == "closed")
                #expect(carrier("spare")?.state == "connected")
                #expect(carrier("main")?.through == "direct")
                let fallen = try #require(carrier("main")?.fallback)
                #expect(fallen.carrier == "spare" && fallen.from == "home")
                #expect(fallen.why?.hasPrefix("it could not be reached: ") == true)
                let text = try await Program.run(["status", fallback]).output
                let words = text.split { $0.isWhitespace }.joined(separator: " ")
                #expect(words.contains("; through spare, which took over from home"))
            }
            let lines = try String(contentsOfFile: fallback + ".log", encoding: .utf8)
            #expect(lines.contains("spare takes over from home: it could not be reached: 1006 path lost ("))
        }
    }

    @Test func `Where nothing runs, that is what is said`() async throws {
        let ended = try await Program.run(["status"])
        #expect(ended.code == 1)
        #expect(ended.errors.hasPrefix("transportkit: no transportkit runs here: nobody answers in "))
        #expect(ended.output.isEmpty)
    }

    @Test(arguments: [
        (
            ": 7",
            "host.yaml:1:10: control: must be a path, or none, and is a number; put it in quotes if it is meant as text"
        ),
        (": [a]", "host.yaml:1:10: control: must be a path, or none, and is a list"),
    ])
    func `The control path is checked`(value: String, expected: String) async throws {
        let found = try await complaints(
            """
            control\(value)
            listeners: { a: { url: "ws://127.0.0.1:1", routes: { /echo: { service: echo } } } }
            """)
        #expect(found == [expected])
    }

    @Test func `A path in the file that cannot be had fails the start`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            try write(
                """
                control: missing/s
                listeners: { a: { url: "ws://127.0.0.1:\(try await freePort())", routes: { /echo: { service: echo } } } }
                """, to: "\(folder)/host.yaml")
            let ended = try await Program.run(["run", "\(folder)/host.yaml"])
            #expect(ended.code == 1)
            #expect(ended.errors.contains("the folder \(folder)/missing is missing"))
        }
    }

    @Test func `A table lines up, and breaks its last column within the width`() {
        var table = TextTable(["a", "b", "what"], indent: 2, width: 30)
        table.add(["long name", "1", "a sentence that does not fit"])
        table.add(["x", "22", "short"])
        #expect(
            table.lines == [
                "  a          b   what",
                "  long name  1   a sentence that does",
                "                 not fit",
                "  x          22  short",
            ])
        #expect(TextTable.broken(String(repeating: "x", count: 45), at: 20).map(\.count) == [20, 20, 5])
        #expect(TextTable.broken("", at: 20) == [""])
        #expect(StatusText.span(59) == "59 s")
        #expect(StatusText.span(3600 * 26 + 61) == "1 d 2 h")
        #expect(StatusText.span(-5) == "0 s")
    }
}
