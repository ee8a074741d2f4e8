internal import Synchronization
internal import TransportIO
internal import TransportKit

/// The main job of the package, shown in one process on loopback: a race that QUIC wins, a forwarded port with real HTTP,
/// UDP that goes silent, and the fallback to the WebSocket.
package enum Demo {
    /// What was seen.
    package struct Report: Sendable {
        /// What carried the first session, and how long it took.
        package var transport: String
        package var connect: Duration
        /// Whether both requests through the forwarded port were answered.
        package var forwardOk: Bool
        /// What carried the session without UDP, and how long it took.
        package var blockedTransport: String
        package var blockedConnect: Duration

        /// One JSON object.
        package var json: String {
            func milliseconds(_ duration: Duration) -> Double { (duration.inMilliseconds * 10).rounded() / 10 }
            return "{\"transport\":\"\(transport)\",\"connectMs\":\(milliseconds(connect)),\"forwardOk\":\(forwardOk),"
                + "\"blockedTransport\":\"\(blockedTransport)\",\"blockedConnectMs\":\(milliseconds(blockedConnect))}"
        }

        /// Whether everything went as it should.
        package var isAsExpected: Bool { transport == "quic" && blockedTransport == "websocket" && forwardOk }
    }

    /// Runs the demonstration; `tell` gets the lines of its timeline.
    package static func run(_ tell: @escaping @Sendable (String) -> Void) async throws -> Report {
        try await HostProgram.withLoop { loop in
            try await HostProgram.withTemporaryFolder { folder in
                try await DemoRun(loop: loop, folder: folder, timeline: Timeline(loop: loop, tell)).run()
            }
        }
    }
}

/// Prints lines with the time since the start.
private final class Timeline: Sendable {
    private let start: Instant
    private let time: any TimeSource
    private let tell: @Sendable (String) -> Void

    init(loop: EventLoop, _ tell: @escaping @Sendable (String) -> Void) {
        start = loop.now()
        time = loop
        self.tell = tell
    }

    func note(_ subject: String, _ what: String) {
        let offset = Words.milliseconds(time.now() - start)
        func pad(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(width - text.count, 0)) }
        tell("\(pad(offset, 10))\(offset)  \(subject)\(pad(subject, 9)) \(what)")
    }
}

/// One demonstration.
private struct DemoRun: Sendable {
    let loop: EventLoop
    let folder: String
    let timeline: Timeline
    private let detour = ObservedTransport.Detour()
    private let attempts = Attempts()

    init(loop: EventLoop, folder: String, timeline: Timeline) {
        self.loop = loop
        self.folder = folder
        self.timeline = timeline
    }

    func run() async throws -> Demo.Report {
        let server = try await DemoWebServer.bind(loop: loop)
        timeline.note("web", "a small web server listens at \(server.endpoint)")
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await server.run() }
            defer { group.cancelAll() }
            let host = HostRunner(try listenerGraph(for: server.endpoint), loop: loop)
            let bound = Inbox<HostRunner.Bound>()
            group.addTask {
                do throws(TransportError) {
                    try await host.run { bound.put($0) }
                } catch {
                    bound.end(.pathLost(error))
                    throw error
                }
            }
            let listener = try await bound.takeFirst()
            guard let endpoint = listener.listeners["demo"], let pin = listener.pins["demo"] else {
                throw TransportError(.system, "the listener of the demonstration has no address")
            }
            timeline.note("listener", "\(endpoint) over QUIC and WebSocket, one port number for both")
            let report = try await dialTwice(endpoint, pin, server.endpoint)
            host.beginGracefulShutdown()
            return report
        }
    }

    private func listenerGraph(for web: TCPEndpoint) throws -> HostGraph {
        let config = Value.mapping([
            ("grace", .text("1s")),
            (
                "listeners",
                .mapping([
                    (
                        "demo",
                        .mapping([
                            ("url", .text("wss://127.0.0.1:0")),
                            ("tls", .mapping([("selfSigned", .text("127.0.0.1")), ("directory", .text(folder))])),
                            (
                                "routes",
                                .mapping([
                                    (
                                        "/forward",
                                        .mapping([
                                            ("service", .text("forward")), ("allow", .list([.text("\(web)")])),
                                        ])
                                    )
                                ])
                            ),
                        ])
                    )
                ])
            ),
        ])
        let registry = try StandardRegistry.make(loop: loop)
        return try HostGraph(
            HostConfiguration(text: config.json, name: "demo"), registry: registry,
            context: BuildContext(executor: loop, time: loop), allowsAnyPort: true)
    }

    private func makeCarrier(_ endpoint: Endpoint, _ pin: PublicKeyHash) throws -> any Carrier {
        let registry = try StandardRegistry.make(loop: loop)
        var context = BuildContext(executor: loop, time: loop).resolving(by: registry)
        let (loop, detour, attempts, timeline, transport) = (loop, detour, attempts, timeline, context.transport)
        context.transport = { name in
            let inner = try transport(name)
            let astray = inner.name == .quic ? detour : nil
            return ObservedTransport(inner: inner, time: loop, detour: astray) { name, event in
                attempts.note(name, event, timeline)
            }
        }
        let target = Target("/forward") ?? .root
        let options = DirectOptions(
            url: DialledURL(ServiceURL(endpoint, target: target)),
            tls: ClientTLSOptions(pin: OneOrMore([Pin(pin)])))
        return try registry.makeCarrier("direct", options: FixedOptions(options), context: context)
    }

    private func dialTwice(
        _ endpoint: Endpoint, _ pin: PublicKeyHash, _ web: TCPEndpoint
    ) async throws -> Demo.Report {
        let carrier = try makeCarrier(endpoint, pin)
        let first = try await session(carrier, to: web)

        let hole = try await BlackHole.open(loop: loop)
        detour.current = hole.port
        timeline.note("network", "UDP is blocked from here on: its packets are dropped and nothing answers")
        let second = try await session(carrier, to: web)
        timeline.note("network", "\(hole.swallowed) UDP packets were dropped meanwhile")
        await hole.close()
        await carrier.close()
        return Demo.Report(
            transport: first.transport.rawValue, connect: first.took, forwardOk: first.isAnswered && second.isAnswered,
            blockedTransport: second.transport.rawValue, blockedConnect: second.took)
    }

    private struct Session {
        var transport: TransportName
        var took: Duration
        var isAnswered: Bool
    }

    /// Opens a session, forwards one request through it, and closes it.
    private func session(_ carrier: any Carrier, to web: TCPEndpoint) async throws -> Session {
        attempts.reset()
        let start = loop.now()
        let socket = try await carrier.open()
        let took = loop.now() - start
        let winner = socket.info.transport
        timeline.note(
            "race", "\(winner.displayName) carries after \(Words.milliseconds(took)): \(attempts.reason(winner))")
        let listener = try await TCPListener.bind(.loopback(), loop: loop)
        let forward = ListeningForward(
            name: "demo", listener: listener, to: .address(web), patience: .seconds(2),
            sessions: OneSession(held: socket),
            activity: Activity(), time: loop, log: Log())
        let isAnswered = await withTaskGroup(of: Void.self) { group in
            group.addTask { await forward.run() }
            defer { group.cancelAll() }
            return await request(forward.localAddress)
        }
        await forward.stopAccepting()
        await socket.close()
        return Session(transport: winner, took: took, isAnswered: isAnswered)
    }

    private func request(_ address: SocketAddress) async -> Bool {
        let start = loop.now()
        do {
            let answer = try await Deadline.run(.seconds(5), time: loop) { [loop] in
                try await DemoWebServer.get(address, loop: loop)
            }
            let words = answer.body.filter { !$0.isNewline }.printable()
            timeline.note(
                "forward",
                "GET http://\(address)/ → \(answer.status.printable()), \"\(words)\" after "
                    + Words.milliseconds(loop.now() - start))
            return answer.body == DemoWebServer.greeting
        } catch {
            timeline.note("forward", "GET http://\(address)/ failed: \(error)")
            return false
        }
    }
}

/// The session of a demonstration, which is not replaced.
private struct OneSession: SessionSource {
    let held: any Socket
    var current: (any Socket)? { held }

    func socket() async throws(Close) -> any Socket { held }
}

/// What the dials of one race did, to say why it was won.
private final class Attempts: Sendable {
    private struct State {
        var started: [TransportName] = []
        var failed: [TransportName: TransportError] = [:]
    }

    private let state = Mutex(State())

    func reset() { state.withLock { $0 = State() } }

    func note(_ name: TransportName, _ event: ObservedTransport.Event, _ timeline: Timeline) {
        switch event {
        case .began:
            state.withLock { $0.started.append(name) }
            timeline.note("dial", "\(name.displayName) is dialled")
        case .opened(let after):
            timeline.note("dial", "\(name.displayName) is open after \(Words.milliseconds(after))")
        case .failed(let error, let after):
            // One that is cancelled had no answer when another won.
            if error.code != .cancelled { state.withLock { $0.failed[name] = error } }
            timeline.note("dial", "\(name.displayName) was given up after \(Words.milliseconds(after)): \(error)")
        }
    }

    /// Why the winner won.
    func reason(_ winner: TransportName) -> String {
        let state = state.withLock { $0 }
        let others = state.started.filter { $0 != winner }
        guard !others.isEmpty else { return "it opened within its head start, so nothing else was dialled" }
        return others.map { other in
            let failure = state.failed[other].map { "failed (\($0))" } ?? "has given no answer so far"
            return "\(other.displayName) \(failure)"
        }.joined(separator: ", ")
    }
}
