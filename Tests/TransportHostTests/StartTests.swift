import Foundation
import Glibc
import Testing
import TransportHost
import TransportIO
import TransportKit
import TransportTLS

/// Starts that something stands in the way of, and starts that are cut short.
@Suite(.timeLimit(.minutes(2))) struct StartTests {
    /// Holds the lock of a folder, as any program may.
    func whileLocked<Result>(_ folder: String, _ body: () async throws -> Result) async throws -> Result {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(descriptor) }
        try #require(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        return try await body()
    }

    // 1 s for the socket, 5 s for the certificate.
    @Test(arguments: [
        ("control: locked/s", "ws", "", "the control socket FOLDER/s cannot be made: somebody else keeps the folder"),
        (
            "control: none", "wss", "tls: { selfSigned: \"127.0.0.1\", directory: locked },",
            "the listener 'a' cannot start: somebody else keeps the directory"
        ),
    ])
    func `A folder that somebody keeps locked fails the start with words, and does not hold it up`(
        control: String, scheme: String, tls: String, words: String
    ) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let file = "\(folder)/host.yaml"
            let listener = "url: \"\(scheme)://127.0.0.1:\(try await freePort())\", \(tls)"
            try write(
                "\(control)\nlisteners: { a: { \(listener) routes: { /: { service: echo } } } }", to: file)
            try await whileLocked("\(folder)/locked") {
                let log = open("\(folder)/log", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
                defer { close(log) }
                try await Program.whileRunning(["run", file], errors: log, limit: .seconds(60)) {
                    (host: Program) async throws in
                    #expect(await host.exitCode() == 1)
                }
            }
            let said = try String(contentsOfFile: "\(folder)/log", encoding: .utf8)
            let expected =
                "transportkit: \(words.replacing("FOLDER", with: "\(folder)/locked")) \(folder)/locked locked\n"
            #expect(said.hasSuffix(expected), "\(said)")
        }
    }

    @Test func `A trace goes to a regular file and to nothing that may block`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let file = "\(folder)/host.yaml"
            let rest = "listeners: { a: { url: \"ws://127.0.0.1:1\", routes: { /: { service: echo } } } }"
            try write("trace: pipe\n\(rest)", to: file)
            try write(rest, to: "\(folder)/plain.yaml")
            try #require(mkfifo("\(folder)/pipe", 0o600) == 0)
            // Somebody who has it open and never reads.
            let reader = open("\(folder)/pipe", O_RDWR | O_NONBLOCK | O_CLOEXEC)
            defer { close(reader) }
            let words = "\(folder)/pipe is a pipe; a regular file is needed"
            for verb in ["check", "run"] {
                let ended = try await Program.run([verb, file])
                #expect(ended.code == 2)
                #expect(ended.errors == "\(file):1:8: trace: \(words)\n1 error; nothing was started\n")
            }
            let chosen = try await Program.run(["run", "\(folder)/plain.yaml", "--trace", "\(folder)/pipe"])
            #expect(chosen.code == 2)
            #expect(chosen.errors == "transportkit: --trace: \(words)\n")
            let device = try await Program.run(["run", "\(folder)/plain.yaml", "--trace", "/dev/null"])
            #expect(device.code == 2)
            #expect(device.errors == "transportkit: --trace: /dev/null is a device; a regular file is needed\n")
        }
    }

    // B24. About 1 s.
    @Test(arguments: [SIGTERM, SIGINT, SIGHUP])
    func `A signal during the start ends it with 0 and leaves nothing, nor does one that was killed before`(
        number: Int32
    ) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            var dead: Int32 = 0
            try await Program.whileRunning(["--version"]) { (program: Program) async throws in
                dead = program.id
                #expect(await program.exitCode() == 0)
            }
            let state = "\(folder)/state"
            try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
            let remains = [
                "paths.json.\(dead).tmp", "network.key.\(dead).new", "network.key.\(dead).new.\(dead).tmp",
            ]
            // Of a process that lives, and of nobody.
            let others = ["paths.json.1.tmp", "paths.json.bak", "other.\(dead).tmp"]
            for name in remains + others { try write("x", to: "\(state)/\(name)") }
            let file = "\(folder)/host.yaml"
            let listener = "url: \"ws://127.0.0.1:\(try await freePort())\""
            try write(
                "state: state\nlisteners: { a: { \(listener), routes: { /: { service: echo } } } }", to: file)
            // The socket has its turn after the key; until then, the start stands still.
            try await whileLocked(state) {
                try await Program.whileRunning(["run", file], limit: .seconds(60)) { (host: Program) async throws in
                    while !FileManager.default.fileExists(atPath: "\(state)/network.key") {
                        try await Task.sleep(for: .milliseconds(5))
                    }
                    host.signal(number)
                    #expect(await host.exitCode() == 0)
                }
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: state)
            #expect(Set(left) == Set(others + ["network.key"]))
        }
    }

    @Test func `Asked to stop before it is bound, a host binds nothing and says nothing`() async throws {
        try await withLoop { loop in
            let holder = try await TCPListener.bind(.loopback(), loop: loop)
            // It could not be bound either.
            let graph = try makeGraph(
                """
                listeners:
                  peer: { url: "ws://127.0.0.1:\(holder.localAddress.port)", routes: { /echo: { service: echo } } }
                """, loop: loop)
            let runner = HostRunner(graph, loop: loop)
            runner.beginGracefulShutdown()
            try await runner.run { _ in Issue.record("it is bound") }
            await holder.close()
        }
    }
}
