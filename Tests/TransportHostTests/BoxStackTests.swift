import Foundation
import Glibc
import Testing
import TransportHost
import TransportIO
import TransportKit

/// Door, box and client as programs of their own on loopback, from the keys to a request through the forward (R170, R171).
@Suite struct BoxStackTests {
    /// The files of all three, and the ports they use.
    private struct Stack {
        let folder: String
        let doorPort: UInt16
        let localPort: UInt16

        func path(_ name: String) -> String { "\(folder)/\(name)" }

        /// Makes the keys of door and box with the program, and writes their files.
        init(_ folder: String, transports: String, service: UInt16) async throws {
            self.folder = folder
            doorPort = try await freePort()
            localPort = try await freePort()
            let door = try await Program.run(["keygen", "\(folder)/door.key"])
            let box = try await Program.run(["keygen", "\(folder)/box.key"])
            try #require(door.code == 0 && box.code == 0)
            let doorKey = door.output.dropLast()
            try write(
                """
                control: none
                listeners:
                  public:
                    url: "wss://127.0.0.1:\(doorPort)"
                    transports: [\(transports)]
                    tls: { selfSigned: ["127.0.0.1"], directory: "\(folder)/certificate" }
                    routes:
                      /v1/app: { service: door.app, keys: [door.key] }
                      /v1/box: { service: door.box, keys: [door.key] }
                """, to: path("door.yaml"))
            try write(
                """
                control: box.sock
                state: state
                keys: { device: box.key }
                carriers:
                  door:
                    kind: direct
                    url: "wss://127.0.0.1:\(doorPort)"
                    transports: [\(transports)]
                    tls: { trust: certificate/certificate.pem }
                box:
                  door: door
                  doorKeys: ["\(doorKey)"]
                  services: { web: "tcp://127.0.0.1:\(service)" }
                """, to: path("box.yaml"))
        }

        /// Has the box make a line, and a new device join with it.
        func pair(_ name: String, line: String? = nil) async throws -> Program.Ended {
            var text = line ?? ""
            if line == nil {
                let made = try await Program.run(["pair", path("box.yaml")])
                try #require(made.code == 0, "\(made.errors)")
                text = made.output
            }
            let words = [
                "pair", "--join", path("\(name).yaml"), "--key", path("\(name).key"), "--trust",
                path("certificate/certificate.pem"), "--port", "\(localPort)",
            ]
            return try await Program.run(words, input: text)
        }
    }

    /// Runs door and box, with a service behind the box that answers each connection with its own bytes.
    private func withStack(
        _ transports: String, _ body: @escaping @Sendable (Stack, EventLoop) async throws -> Void
    ) async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                let target = try await TCPListener.bind(.loopback(), loop: loop)
                let echoing = Task(executorPreference: loop) {
                    await withDiscardingTaskGroup { group in
                        while let connection = try? await target.accept() {
                            group.addTask {
                                while let bytes = try? await connection.read(upTo: 65_536) {
                                    try? await connection.write(bytes)
                                }
                                try? await connection.finish()
                                await connection.close()
                            }
                        }
                    }
                }
                let stack = try await Stack(folder, transports: transports, service: target.localAddress.port)
                try await Program.whileRunning(["run", stack.path("door.yaml")]) { door in
                    _ = try #require(try await door.lines(until: "ready"))
                    try await Program.whileRunning(["run", stack.path("box.yaml")]) { box in
                        _ = try #require(try await box.lines(until: "ready"))
                        try await body(stack, loop)
                    }
                }
                await target.close()
                await echoing.value
            }
        }
    }

    /// Sends a text through the forward of a client that runs, and returns what comes back.
    private func echo(_ text: String, _ stack: Stack, _ loop: EventLoop) async throws -> Bytes {
        let connection = try await TCPConnection.connect(to: .loopback(port: stack.localPort), loop: loop)
        try await connection.write(Bytes(text))
        try await connection.finish()
        let answer = try await readAll(connection)
        await connection.close()
        return answer
    }

    @Test(arguments: ["quic", "websocket"])
    func `A device pairs, reaches the service of the box, and is gone once it is revoked`(
        transport: String
    ) async throws {
        try await withStack(transport) { stack, loop in
            let joined = try await stack.pair("phone")
            #expect(joined.code == 0, "\(joined.errors)")
            #expect(joined.output.contains("web will be at tcp://127.0.0.1:\(stack.localPort)"))
            let config = try String(contentsOfFile: stack.path("phone.yaml"), encoding: .utf8)
            #expect(config.contains("to: \"web\""))
            try await Program.whileRunning(["run", stack.path("phone.yaml")]) { client in
                _ = try #require(try await client.lines(until: "ready"))
                for number in 0..<5 {
                    let text = "request \(number) " + String(repeating: "x", count: 100_000 * number)
                    #expect(try await echo(text, stack, loop) == Bytes(text))
                }
                let listed = try await Program.run(["devices", stack.path("box.yaml"), "--json"])
                let report = try JSONDecoder().decode(DevicesReport.self, from: Data(listed.output.utf8))
                #expect(report.devices.map(\.sessions) == [1])
                let key = try #require(report.devices.first?.key)
                let named = try await Program.run([
                    "devices", "name", String(key.prefix(8)), "phone", stack.path("box.yaml"),
                ])
                #expect(named.code == 0 && named.output.contains("phone"), "\(named.errors)")
                // The session ends at once, and there is no other.
                let revoked = try await Program.run(["devices", "revoke", "phone", stack.path("box.yaml")])
                #expect(revoked.code == 0 && revoked.output.contains("no device is paired"), "\(revoked.errors)")
                let connection = try await TCPConnection.connect(to: .loopback(port: stack.localPort), loop: loop)
                #expect(await endError(of: connection)?.code == .pathReset)
            }
        }
    }

    @Test func `A line lets in one device, once, and none that nobody made`() async throws {
        try await withStack("quic, websocket") { stack, _ in
            let made = try await Program.run(["pair", stack.path("box.yaml"), "--json"])
            let report = try JSONDecoder().decode(PairReport.self, from: Data(made.output.utf8))
            #expect(report.secondsLeft == 600 && report.line.hasPrefix("tk1:"))
            let first = try await stack.pair("first", line: report.line + "\n")
            #expect(first.code == 0, "\(first.errors)")
            let second = try await stack.pair("second", line: report.line)
            #expect(second.code == 1 && second.output.isEmpty)
            #expect(second.errors.contains("the door lets nobody in with this line"), "\(second.errors)")
            #expect(!FileManager.default.fileExists(atPath: stack.path("second.yaml")))
            // A file that is there stays as it is.
            let again = try await stack.pair("first", line: report.line)
            #expect(again.code == 1 && again.errors.contains("is there already and is not overwritten"))
            let broken = try await stack.pair("third", line: String(report.line.dropLast(9)))
            #expect(broken.code == 1 && broken.errors.contains("this pairing line is"), "\(broken.errors)")
            for ended in [first, second, again, broken] {
                #expect(!(ended.output + ended.errors).contains(report.line.suffix(20)))
            }
        }
    }
}
