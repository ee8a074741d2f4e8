import Foundation
import MuxCarrier
import Testing
import TransportKit
import TransportKitTesting

/// Against hashicorp/yamux, in both roles. Debian has it as `golang-github-hashicorp-yamux-dev`.
@Suite(
    .serialized,
    .enabled(if: GoPeer.isHere, "needs the Debian packages golang-go and golang-github-hashicorp-yamux-dev"))
struct GoYamuxTests {
    private func withPeer(
        _ role: String, _ body: (any Socket) async throws -> Void
    ) async throws {
        let peer = try GoPeer(role: role)
        defer { peer.stop() }
        let time = MachineTime()
        let multiplexer = YamuxMultiplexer(executor: QueueExecutor(), time: time)
        let socket = await multiplexer.wrap(peer.socket, isDialer: role == "server", limits: Limits())
        try await body(socket)
        await socket.close()
    }

    private func echo(_ stream: any TransportKit.Stream) async throws {
        while let part = try await stream.read(upTo: 65_536) { try await stream.write(part) }
        try await stream.finish()
    }

    private func roundTrip(_ count: Int, over stream: any TransportKit.Stream) async throws {
        let sent = Bytes(repeating: UInt8(truncatingIfNeeded: count / 1000), count: count)
        async let writing: Void = {
            try await stream.write(sent); try await stream.finish()
        }()
        var received = Bytes()
        while let part = try await stream.read(upTo: 65_536) { received.append(contentsOf: part) }
        try await writing
        #expect(received == sent)
    }

    @Test func `Go's server answers our streams and messages`() async throws {
        try await withPeer("server") { socket in
            // The lanes are streams to it, so it sends our messages back as they were framed.
            try await socket.send([
                Message(Bytes("control")), Message(Bytes(repeating: 7, count: 1 << 20), delivery: .bulk),
            ])
            var received: [Message] = []
            while received.count < 2 { received += try await socket.receive() }
            #expect(Set(received.map(\.payload.count)) == [7, 1 << 20])
            for size in [0, 1, 16_384, 1 << 20] {
                try await roundTrip(size, over: try await socket.openStream())
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for size in 1...50 {
                    group.addTask { try await roundTrip(size * 1000, over: try await socket.openStream()) }
                }
                try await group.waitForAll()
            }
            // A reset takes nothing else with it.
            let stream = try await socket.openStream()
            try await stream.write([1])
            await stream.reset(0)
            try await roundTrip(1000, over: try await socket.openStream())
        }
    }

    @Test func `Go's client is answered by us`() async throws {
        try await withPeer("client") { socket in
            for _ in 0..<2 { try await echo(try await socket.acceptStream()) }
            try await socket.send(Message(Bytes("to the dialer")))
            #expect(try await socket.receive().map(\.payload) == [Bytes("to the dialer")])
            try await roundTrip(1 << 20, over: try await socket.openStream())
        }
    }
}

/// The other program, built once.
private struct GoPeer {
    let socket: PipeSocket
    private let process = Process()

    static let go = ["/usr/bin/go", "/usr/local/go/bin/go"].first { FileManager.default.isExecutableFile(atPath: $0) }
    static let sources = "/usr/share/gocode"
    static let isHere =
        go != nil && FileManager.default.fileExists(atPath: sources + "/src/github.com/hashicorp/yamux/session.go")

    static let program = Result<URL, any Error> {
        let folder = FileManager.default.temporaryDirectory.appending(path: "yamux-peer-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let program = folder.appending(path: "peer")
        let build = Process()
        build.executableURL = URL(filePath: go ?? "/usr/bin/go")
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Peer/main.go")
        build.arguments = ["build", "-o", program.path, source.path]
        build.environment = [
            "GOPATH": sources, "GO111MODULE": "off", "GOCACHE": folder.path, "HOME": folder.path, "CGO_ENABLED": "0",
            "PATH": "/usr/bin:/bin",
        ]
        try build.run()
        build.waitUntilExit()
        guard build.terminationStatus == 0 else { throw TransportError(.system, "the Go peer does not build") }
        return program
    }

    init(role: String) throws {
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = try Self.program.get()
        process.arguments = [role]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        // Our own copies of its ends are closed by `run`.
        socket = PipeSocket(input: input.fileHandleForWriting, output: output.fileHandleForReading)
    }

    func stop() {
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
    }
}
