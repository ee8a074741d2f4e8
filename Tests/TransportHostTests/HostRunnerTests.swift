import Testing
import TransportHost
import TransportIO
import TransportKit

/// Starting, serving and stopping a host, on real sockets.
@Suite(.timeLimit(.minutes(1))) struct HostRunnerTests {
    /// A listener with both services; `to` is what may be reached.
    func service(_ loop: EventLoop, folder: String, to: String = "tcp://127.0.0.1:1", grace: String = "30s") throws
        -> HostGraph
    {
        try makeGraph(
            """
            grace: \(grace)
            listeners:
              peer:
                url: "wss://127.0.0.1:0"
                tls: { selfSigned: "127.0.0.1", directory: "\(folder)" }
                routes:
                  /forward: { service: forward, allow: ["\(to)"] }
                  /echo: { service: echo }
            """, loop: loop, allowsAnyPort: true)
    }

    /// Dials a route with one transport.
    func dial(
        _ bound: HostRunner.Bound, _ path: String, over transport: String, loop: EventLoop
    ) async throws -> any Socket {
        let endpoint = try #require(bound.listeners["peer"])
        let pin = try #require(bound.pins["peer"])
        let settings = DialSettings(
            url: ServiceURL(endpoint, target: try #require(Target(path))), transports: [transport], pins: [pin])
        return try await settings.makeCarrier(loop: loop, log: Log()) { _ in }.open()
    }

    @Test(arguments: ["quic", "websocket"])
    func `Both transports answer on one port number, with messages and streams`(transport: String) async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                try await withHost(service(loop, folder: folder), loop: loop) { bound in
                    let socket = try await dial(bound, "/echo", over: transport, loop: loop)
                    #expect(socket.info.transport.rawValue == transport)
                    let payloads = [Bytes(), Bytes("hello"), Bytes(repeating: 9, count: 1 << 20)]
                    for payload in payloads {
                        try await socket.send(Message(payload))
                        #expect(try await socket.receive().map(\.payload) == [payload])
                    }
                    let stream = try await socket.openStream()
                    try await stream.write(Bytes("over a stream"))
                    try await stream.finish()
                    var echoed = Bytes()
                    while let bytes = try await stream.read(upTo: 100) { echoed.append(contentsOf: bytes) }
                    #expect(echoed == Bytes("over a stream"))
                    #expect(await socket.close().code == .normal)
                }
            }
        }
    }

    // R20
    @Test func `QUIC listens on as many loops as the file says, and serves whom the kernel gives to any of them`()
        async throws
    {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                let lines = RecordingLog()
                let loops = ListenerLoops()
                let graph = try makeGraph(
                    """
                    transports: { quic: { kind: quic, loops: 4 } }
                    listeners:
                      peer:
                        url: "wss://127.0.0.1:0"
                        tls: { selfSigned: "127.0.0.1", directory: "\(folder)" }
                        routes: { /echo: { service: echo } }
                    """, loop: loop, listenerLoops: loops, allowsAnyPort: true, log: Log(level: .info, sink: lines))
                try await withHost(graph, loop: loop) { bound in
                    for number in 0..<16 {
                        let socket = try await dial(bound, "/echo", over: "quic", loop: loop)
                        try await socket.send(Message([UInt8(number)]))
                        #expect(try await socket.receive().map(\.payload) == [[UInt8(number)]])
                        #expect(await socket.close().code == .normal)
                    }
                }
                await loops.shutdown()
                #expect(lines.lines.count { $0.message.hasSuffix(" runs on 4 loops") } == 1)
            }
        }
    }

    @Test(arguments: [
        (Bytes([4]) + Bytes("nope"), CloseCode.badTarget, "the URL must have the form tcp://host:port"),
        (
            Bytes([0xc0, 0, 1, 0, 0, 0, 0, 0]), .badTarget,
            "the address is announced with 1099511627776 bytes; 4096 are allowed"
        ),
        (Bytes([2, 0xff, 0xff]), .badTarget, "the address is not UTF-8"),
        (Bytes([9]) + Bytes("tcp"), .badTarget, "the stream ended inside the address"),
        (Bytes(), .badTarget, "the stream ended inside the address"),
        (
            Bytes([15]) + Bytes("tcp://[::1]:22x"), .badTarget,
            "the URL has a bad port; 0 to 65535 are allowed, 0 only to listen"
        ),
        (
            Bytes([14]) + Bytes("tcp://[::1]:22") + Bytes("early bytes"), .refused,
            "tcp://[::1]:22 is not on the list of what may be reached"
        ),
    ])
    func `A bad head of a stream is answered, and the session goes on`(
        head: Bytes, code: CloseCode, reason: String
    ) async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                try await withHost(service(loop, folder: folder), loop: loop) { bound in
                    let socket = try await dial(bound, "/forward", over: "websocket", loop: loop)
                    for _ in 0..<2 {
                        let stream = try await socket.openStream()
                        try await stream.write(head)
                        try await stream.finish()
                        var reader = ForwardHeader.AnswerReader()
                        while let bytes = try await stream.read(upTo: 100) { reader.feed(bytes) }
                        #expect(try reader.next() == .refused(ForwardHeader.Refusal(code, reason)))
                    }
                    await socket.close()
                }
            }
        }
    }

    @Test(arguments: ["quic", "websocket"])
    func `A message to a route that takes streams ends the session with 1003`(transport: String) async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                try await withHost(service(loop, folder: folder), loop: loop) { bound in
                    let socket = try await dial(bound, "/forward", over: transport, loop: loop)
                    try await socket.send(Message(Bytes("hello")))
                    let close = try #require(await #expect(throws: Close.self) { try await socket.receive() })
                    #expect(close.code == .unsupported)
                }
            }
        }
    }

    @Test(arguments: ["quic", "websocket"])
    func `Asked to stop, a host refuses what is new, finishes what is under way and says 1001`(
        transport: String
    ) async throws {
        // B24
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                let target = try await TCPListener.bind(.loopback(), loop: loop)
                let to = "tcp://127.0.0.1:\(target.localAddress.port)"
                let log = RecordingLog()
                let runner = HostRunner(
                    try service(loop, folder: folder, to: to), loop: loop, log: Log(sink: log))
                try await withHost(runner) { bound in
                    let idle = try await dial(bound, "/echo", over: transport, loop: loop)
                    let busy = try await dial(bound, "/forward", over: transport, loop: loop)
                    let stream = try await busy.openStream()
                    try await stream.write(ForwardHeader.request(TCPEndpoint(to)))
                    let server = try await target.accept()
                    #expect(try await stream.read(upTo: 2) == Bytes([0, 0]))

                    runner.beginGracefulShutdown()
                    let idleClose = try #require(await #expect(throws: Close.self) { try await idle.receive() })
                    #expect(idleClose.code == .goingAway)
                    await #expect(throws: Close.self) {
                        try await dial(bound, "/echo", over: transport, loop: loop)
                    }
                    // The transfer goes on, both ways, to its end.
                    try await stream.write(Bytes("still here"))
                    try await stream.finish()
                    #expect(try await readAll(server) == Bytes("still here"))
                    try await server.write(Bytes("and back"))
                    try await server.finish()
                    #expect(try await stream.read(upTo: 100) == Bytes("and back"))
                    #expect(try await stream.read(upTo: 100) == nil)
                    let busyClose = try #require(await #expect(throws: Close.self) { try await busy.receive() })
                    #expect(busyClose.code == .goingAway)
                    await server.close()
                }
                #expect(log.lines.filter { $0.level >= .warning }.isEmpty)
            }
        }
    }

    @Test func `Once the grace time is over a transfer is cut`() async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                let target = try await TCPListener.bind(.loopback(), loop: loop)
                let to = "tcp://127.0.0.1:\(target.localAddress.port)"
                let runner = HostRunner(
                    try service(loop, folder: folder, to: to, grace: "50ms"), loop: loop)
                try await withHost(runner) { bound in
                    let busy = try await dial(bound, "/forward", over: "quic", loop: loop)
                    let stream = try await busy.openStream()
                    try await stream.write(ForwardHeader.request(TCPEndpoint(to)))
                    let server = try await target.accept()
                    #expect(try await stream.read(upTo: 2) == Bytes([0, 0]))
                    runner.beginGracefulShutdown()
                    #expect(await endError(of: server)?.code == .pathReset)
                    let close = try #require(await #expect(throws: Close.self) { try await busy.receive() })
                    #expect(close.code == .goingAway)
                }
            }
        }
    }

    @Test func `A port that is taken fails the start, names its holder and leaves nothing bound`() async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                let holder = try await TCPListener.bind(.loopback(), loop: loop)
                let port = holder.localAddress.port
                let graph = try makeGraph(
                    """
                    carriers: { main: { kind: direct, url: "ws://127.0.0.1:1/" } }
                    listeners:
                      peer: { url: "ws://127.0.0.1:0", routes: { /echo: { service: echo } } }
                    forwards:
                      - { listen: "tcp://127.0.0.1:0", carrier: main, to: "tcp://127.0.0.1:1" }
                      - { listen: "tcp://127.0.0.1:\(port)", carrier: main, to: "tcp://127.0.0.1:1" }
                    """, loop: loop, allowsAnyPort: true)
                let error = await #expect(throws: TransportError.self) {
                    try await withHost(graph, loop: loop) { _ in Issue.record("it is not bound") }
                }
                #expect(error?.code == .addressInUse)
                #expect(error?.message.contains("the forward at tcp://127.0.0.1:\(port) cannot start") == true)
                #expect(error?.message.contains("(process ") == true)

                // Optional, it is tried again later, and the rest runs.
                let optional = try makeGraph(
                    """
                    carriers: { main: { kind: direct, url: "ws://127.0.0.1:1/" } }
                    forwards:
                      - { listen: "tcp://127.0.0.1:\(port)", carrier: main, to: "tcp://127.0.0.1:1", optional: true }
                      - { listen: "tcp://127.0.0.1:0", carrier: main, to: "tcp://127.0.0.1:1" }
                    """, loop: loop, allowsAnyPort: true)
                try await withHost(optional, loop: loop) { bound in
                    #expect(bound.forwards[0] == nil)
                    #expect(bound.forwards[1] != nil)
                }
            }
        }
    }

    @Test func `A listener whose port is taken fails the start and names it`() async throws {
        try await withLoop { loop in
            let holder = try await TCPListener.bind(.loopback(), loop: loop)
            let graph = try makeGraph(
                """
                listeners:
                  peer: { url: "ws://127.0.0.1:\(holder.localAddress.port)", routes: { /echo: { service: echo } } }
                """, loop: loop)
            let error = await #expect(throws: TransportError.self) {
                try await withHost(graph, loop: loop) { _ in }
            }
            #expect(error?.message.hasPrefix("the listener 'peer' cannot start: ") == true)
            #expect(error?.message.contains(":\(holder.localAddress.port)") == true)
        }
    }

    @Test func `What check says is what run says`() async throws {
        try await withTemporaryFolder { folder in
            let file = "\(folder)/host.yaml"
            try write("listeners: { a: { url: 5 } }\nforwards: 7\n", to: file)
            let checked = await #expect(throws: ConfigErrors.self) { try await HostProgram.check(configFile: file) }
            let run = await #expect(throws: ConfigErrors.self) {
                try await HostProgram.run(configFile: file) { Issue.record("it started") }
            }
            #expect(checked == run)
            #expect(checked?.errors.count == 3)
        }
    }
}

extension Bytes {
    static func + (left: Bytes, right: Bytes) -> Bytes {
        var both = left
        both.append(contentsOf: right)
        return both
    }
}
