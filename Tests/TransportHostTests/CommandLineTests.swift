import Foundation
import Testing
import TransportIO
import TransportKit

/// The program itself: exit codes, what goes where, and signals.
@Suite(.timeLimit(.minutes(2))) struct CommandLineTests {
    @Test(arguments: [
        ([], 2, "usage: transportkit VERB"),
        (
            ["runn"], 2,
            "transportkit: unknown verb 'runn'; did you mean 'run'? there are demo, run, check, status, explain, pipe, forward, echo, keygen, pair, devices, --help and --version"
        ),
        (["--versoin"], 2, "transportkit: unknown flag '--versoin'"),
        (["run"], 2, "transportkit: usage: transportkit run CONFIG [--trace FILE]"),
        (["check", "a", "b"], 2, "transportkit: usage: transportkit check CONFIG"),
        (
            ["demo", "--jsn"], 2,
            "transportkit: demo: unknown flag '--jsn'; did you mean '--json'? there are --json and --help"
        ),
        (["demo", "--json", "--json"], 2, "transportkit: --json stands twice; once is enough"),
        (["demo", "--json=1"], 2, "transportkit: --json takes no value"),
        (["pipe", "wss://a", "--pin"], 2, "transportkit: --pin needs sha256:HEX"),
        (["pipe", "wss://a", "--pin", "x"], 2, "transportkit: --pin must be sha256: and 64 hexadecimal digits"),
        (
            ["pipe", "https://a"], 2,
            "transportkit: the URL has an unknown scheme; wss:// and ws:// are allowed, for example wss://127.0.0.1:8443/echo"
        ),
        (
            ["pipe", "wss://a", "--transports", "quick"], 2,
            "transportkit: --transports: there is no 'quick'; did you mean 'quic'? there are quic and websocket"
        ),
        (["pipe", "ws://a", "--transports", "quic"], 2, "transportkit: --transports: QUIC has no form without TLS"),
        (["pipe", "ws://a", "--trust", "f"], 2, "transportkit: --trust is of no use with ws://"),
        (
            ["pipe", "wss://a", "--linger", "5"], 2,
            "transportkit: --linger must be a duration such as 250ms, 5s or 2m, and is '5'"
        ),
        (["pipe", "wss://a", "--timeout", "1ms"], 2, "transportkit: --timeout must be at least 100ms"),
        (["pipe", "wss://a", "--raw", "--lines"], 2, "transportkit: --lines and --raw exclude each other"),
        (["forward", "tcp://a", "wss://a", "tcp://b:1"], 2, "transportkit: 'tcp://a': the URL has no port"),
        (["echo", "wss://127.0.0.1:0", "--key", "k"], 2, "transportkit: --certificate and --key go together"),
        (
            ["check", "/nonexistent.yaml"], 2,
            "/nonexistent.yaml: cannot be read: No such file or directory\n1 error; nothing was started"
        ),
        (
            ["run", "/nonexistent.yaml", "--trace", "/etc/passwd"], 2,
            "transportkit: --trace: the file /etc/passwd "
        ),
        (
            ["run", "/nonexistent.yaml"], 2,
            "/nonexistent.yaml: cannot be read: No such file or directory\n1 error; nothing was started"
        ),
    ])
    func `Bad usage ends with 2 and says on standard error what would do`(
        words: [String], code: Int32, expected: String
    ) async throws {
        let ended = try await Program.run(words)
        #expect(ended.code == code)
        #expect(ended.errors.hasPrefix(expected), "\(ended.errors)")
        #expect(ended.output.isEmpty)
    }

    // B46
    @Test(arguments: [8, 63, 64])
    func `Too few open files are named before anything begins, and a low limit is raised`(limit: Int) async throws {
        let words = ["-c", "ulimit -n \(limit); exec \"$0\" demo --json", Program.path]
        let ended = try await Program.run(words, executable: "/bin/sh")
        #expect(ended.code == (limit < 64 ? 1 : 0))
        #expect(
            limit >= 64
                || ended.errors == "transportkit: this process may open \(limit) files and needs at least 64 "
                    + "(raise the limit with ulimit -n or LimitNOFILE=)\n",
            "\(ended.errors)")
        let lowered = ["-c", "ulimit -Sn 8; exec \"$0\" --version", Program.path]
        #expect(try await Program.run(lowered, executable: "/bin/sh").code == 0)
    }

    @Test func `Help and version go to standard output`() async throws {
        let help = try await Program.run(["--help"])
        #expect(help.code == 0 && help.output.hasPrefix("usage: transportkit VERB") && help.errors.isEmpty)
        for verb in ["demo", "run", "check", "pipe", "forward", "echo", "keygen", "pair", "devices"] {
            #expect(help.output.contains("\n  \(verb) "))
            let ended = try await Program.run([verb, "--help"])
            #expect(ended.code == 0 && ended.output.hasPrefix("usage: transportkit \(verb) "))
        }
        let version = try await Program.run(["--version"])
        #expect(version.code == 0 && version.output.hasPrefix("transportkit "))
    }

    @Test func `The demonstration ends well and prints one object`() async throws {
        let ended = try await Program.run(["demo", "--json"])
        #expect(ended.code == 0)
        let object = try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any]
        #expect(object?["transport"] as? String == "quic")
        #expect(object?["blockedTransport"] as? String == "websocket")
        #expect(object?["forwardOk"] as? Bool == true)
        #expect((object?["connectMs"] as? Double).map { $0 > 0 } == true)
        // QUIC has its head start, and nobody waits for its timeout (B02).
        #expect((object?["blockedConnectMs"] as? Double).map { (250..<5000).contains($0) } == true)
    }

    @Test func `echo and pipe answer each other, and what was not delivered is no success`() async throws {
        try await Program.whileRunning(["echo"]) { echo in
            let words = try #require(try await echo.lines(until: "ready"))
            let url = try #require(words.first { $0.hasPrefix("listening at ") }?.dropFirst(13))
            let pin = try #require(words.first { $0.hasPrefix("pin ") }?.dropFirst(4))
            let base = ["pipe", String(url), "--pin", String(pin)]
            for transport in ["quic", "websocket"] {
                let lines = (1...2000).map { "line \($0)\n" }.joined() + "no newline at the end"
                let ended = try await Program.run(base + ["--transports", transport], input: lines)
                #expect(ended.code == 0, "\(ended.errors)")
                #expect(ended.output == lines + "\n")
                let raw = String(repeating: "0123456789abcdef", count: 100_000)
                let rawEnded = try await Program.run(base + ["--raw", "--transports", transport], input: raw)
                #expect(rawEnded.code == 0, "\(rawEnded.errors)")
                #expect(rawEnded.output == raw)
            }
            // The answers of a service that has closed are not waited for.
            let wrongRoute = try await Program.run(
                ["pipe", url + "/nope", "--pin", String(pin), "--transports", "quic", "--linger", "1h"], input: "x\n")
            #expect(wrongRoute.code == 1)
            #expect(wrongRoute.errors.contains("4404 nobody there"))
            let wrongPin = try await Program.run(
                ["pipe", String(url), "--pin", "sha256:" + String(repeating: "0", count: 64)], input: "x\n")
            #expect(wrongPin.code == 1)
            #expect(wrongPin.output.isEmpty)
            #expect(wrongPin.errors.hasPrefix("transportkit: QUIC: "))
            #expect(wrongPin.errors.split(separator: "\n").count == 1, "\(wrongPin.errors)")
        }
    }

    @Test func `run says ready once it is bound, and a signal stops it with 0`() async throws {
        try await withTemporaryFolder { folder in
            let port = try await freePort()
            let file = "\(folder)/host.yaml"
            try write(
                """
                listeners:
                  peer:
                    url: "wss://127.0.0.1:\(port)"
                    tls: { selfSigned: "127.0.0.1", directory: state }
                    routes: { /echo: { service: echo } }
                """, to: file)
            let checked = try await Program.run(["check", file])
            #expect(checked.code == 0 && checked.output == "\(file): ok, 1 listener\n")
            #expect(!FileManager.default.fileExists(atPath: "\(folder)/state"))
            try await Program.whileRunning(["run", file]) { host in
                _ = try await host.lines(until: "ready")
                let echoed = try await Program.run(
                    ["pipe", "wss://127.0.0.1:\(port)/echo", "--trust", "\(folder)/state/certificate.pem"],
                    input: "hello\n")
                #expect(echoed.code == 0 && echoed.output == "hello\n")
                let second = try await Program.run(["run", file])
                #expect(second.code == 1)
                #expect(second.errors.contains("held by transportkit (process \(host.id))"))
                host.signal(SIGTERM)
                #expect(await host.exitCode() == 0)
            }
        }
    }

    @Test func `A config with errors starts nothing and names them all`() async throws {
        try await withTemporaryFolder { folder in
            let file = "\(folder)/host.yaml"
            try write("listener: {}\nforwards: [{ listen: 5 }]\n", to: file)
            let checked = try await Program.run(["check", file])
            let run = try await Program.run(["run", file])
            #expect(checked.code == 2 && run.code == 2)
            #expect(checked.errors == run.errors)
            #expect(
                checked.errors.hasPrefix(
                    "\(file):1:1: listener: unknown key; did you mean 'listeners'? allowed are log, grace, state, control, trace, keys, transports, "
                ))
            #expect(checked.errors.hasSuffix("4 errors; nothing was started\n"))
        }
    }

    @Test func `A reader that goes away ends pipe with 1, and never silently`() async throws {
        // B26
        try await Program.whileRunning(["echo"]) { echo in
            let words = try #require(try await echo.lines(until: "ready"))
            let url = try #require(words.first { $0.hasPrefix("listening at ") }?.dropFirst(13))
            let pin = try #require(words.first { $0.hasPrefix("pin ") }?.dropFirst(4))
            let program = Program.path
            let ended = try await Program.run(
                ["-c", "(\"\(program)\" pipe \(url) --pin \(pin); echo code $? >&2) | head -c 1 > /dev/null"],
                executable: "/bin/sh", input: (1...200_000).map { "\($0)\n" }.joined())
            #expect(ended.errors.contains("standard output was closed by whoever read it"))
            #expect(ended.errors.contains("code 1"))
        }
    }

    @Test func `A standard descriptor that is closed is not taken for a socket`() async throws {
        try await Program.whileRunning(["echo"]) { echo in
            let words = try #require(try await echo.lines(until: "ready"))
            let url = try #require(words.first { $0.hasPrefix("listening at ") }?.dropFirst(13))
            let pin = try #require(words.first { $0.hasPrefix("pin ") }?.dropFirst(4))
            func pipe(_ redirections: String) async throws -> Program.Ended {
                try await Program.run(
                    ["-c", "\"\(Program.path)\" pipe \(url) --pin \(pin) \(redirections)"], executable: "/bin/sh",
                    input: "hello\n")
            }
            let noInput = try await pipe("--quiet <&-")
            #expect(noInput.code == 0 && noInput.output.isEmpty, "\(noInput.errors)")
            let noErrors = try await pipe("2>&-")
            #expect(noErrors.code == 0 && noErrors.output == "hello\n")
            let noOutput = try await pipe("--quiet >&-")
            #expect(noOutput.code == 1 && noOutput.errors.contains("standard output: Bad file descriptor"))
            let fullOutput = try await pipe("--quiet >/dev/full")
            #expect(fullOutput.code == 1 && fullOutput.errors.contains("standard output: No space left on device"))
        }
    }

    @Test(arguments: ["--help", "--version", "run --help", "check ok.yaml", "demo --json"])
    func `A result that cannot be written is no success`(words: String) async throws {
        try await withTemporaryFolder { folder in
            try write(
                "listeners: { a: { url: \"ws://127.0.0.1:1\", routes: { /: { service: echo } } } }",
                to: "\(folder)/ok.yaml")
            let ended = try await Program.run(
                ["-c", "cd \(folder) && \"\(Program.path)\" \(words) >/dev/full"], executable: "/bin/sh")
            #expect(ended.code == 1)
            #expect(ended.errors.hasSuffix("transportkit: standard output: No space left on device\n"))
        }
    }

    @Test func `A terminal that hangs up stops the program like SIGTERM, unless nohup stands before it`() async throws {
        try await Program.whileRunning(["echo"]) { echo in
            _ = try await echo.lines(until: "ready")
            echo.signal(SIGHUP)
            #expect(await echo.exitCode() == 0)
        }
        let script = "trap '' HUP; exec \"$0\" echo"
        try await Program.whileRunning(["-c", script, Program.path], executable: "/bin/sh") { echo in
            _ = try await echo.lines(until: "ready")
            echo.signal(SIGHUP)
            echo.signal(SIGTERM)
            #expect(await echo.exitCode() == 0)
        }
    }
}
