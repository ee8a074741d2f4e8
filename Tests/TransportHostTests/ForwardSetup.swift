import Synchronization
import Testing
import TransportHost
import TransportIO
import TransportKit

/// What a test of forwards works with.
struct ForwardSetup: Sendable {
    let loop: EventLoop
    /// What the forwards lead to.
    let target: TCPListener
    /// Where the forwards listen.
    let forwards: [SocketAddress]
    let wire: WatchedTransport.Record

    /// Opens a connection to a forward.
    func connect(_ index: Int = 0) async throws -> TCPConnection {
        try await TCPConnection.connect(to: forwards[index], loop: loop)
    }

    /// How many sessions were dialled.
    var carrierOpens: Int { wire.sockets.count }

    /// Ends the session under the forwards, as a lost path would.
    func breakSession() async {
        await wire.sockets.last?.close(.goingAway, reason: "a test broke it")
    }
}

/// A transport that remembers the sockets it dialled.
struct WatchedTransport: Transport {
    final class Record: Sendable {
        private let kept = Mutex<[any Socket]>([])
        var sockets: [any Socket] { kept.withLock { $0 } }

        func add(_ socket: any Socket) { kept.withLock { $0.append(socket) } }
    }

    let inner: any Transport
    let record: Record
    var name: TransportName { inner.name }
    var capabilities: Capabilities { inner.capabilities }

    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        let socket = try await inner.dial(url, options: options)
        record.add(socket)
        return socket
    }

    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        try await inner.listen(endpoint, options: options)
    }
}

/// Runs a graph while `body` runs, then asks it to stop and waits until it has.
func withHost(
    _ graph: HostGraph, loop: EventLoop, log: Log = Log(),
    _ body: @escaping @Sendable (HostRunner.Bound) async throws -> Void
) async throws {
    let runner = HostRunner(graph, loop: loop, log: log)
    try await withHost(runner, body)
}

/// Runs a host while `body` runs.
func withHost(
    _ runner: HostRunner, _ body: @escaping @Sendable (HostRunner.Bound) async throws -> Void
) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        let bound = Inbox<HostRunner.Bound>()
        group.addTask {
            do throws(TransportError) {
                try await runner.run { bound.put($0) }
            } catch {
                bound.end(.pathLost(error))
                throw error
            }
        }
        let outcome: Result<Void, any Error>
        do {
            try await body(try await bound.takeFirst())
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        runner.beginGracefulShutdown()
        try await group.waitForAll()
        try outcome.get()
    }
}

/// Runs `body` between a host that listens with the service `forward` and one that forwards to it.
func withForward(
    over transport: String, forwards count: Int = 1, to: String? = nil, log: RecordingLog = RecordingLog(),
    _ body: @escaping @Sendable (ForwardSetup) async throws -> Void
) async throws {
    try await withLoop { loop in
        try await withTemporaryFolder { folder in
            let target = try await TCPListener.bind(.loopback(), loop: loop)
            let address = "tcp://127.0.0.1:\(target.localAddress.port)"
            let service = try makeGraph(
                """
                grace: 200ms
                listeners:
                  peer:
                    url: "wss://127.0.0.1:0"
                    transports: [\(transport)]
                    tls: { selfSigned: "127.0.0.1", directory: "\(folder)" }
                    routes: { /forward: { service: forward, allow: ["\(address)"] } }
                """, loop: loop, allowsAnyPort: true)
            try await withHost(service, loop: loop) { bound in
                let endpoint = try #require(bound.listeners["peer"])
                let pin = try #require(bound.pins["peer"])
                let record = WatchedTransport.Record()
                let lines = (0..<count).map { _ in
                    "  - { listen: \"tcp://127.0.0.1:0\", carrier: main, to: \"\(to ?? address)\" }"
                }
                let client = try makeGraph(
                    """
                    grace: 200ms
                    carriers:
                      main: { kind: direct, url: "\(endpoint)/forward", transports: [watched], tls: { pin: "\(pin)" } }
                    forwards:
                    \(lines.joined(separator: "\n"))
                    """, loop: loop, allowsAnyPort: true
                ) { registry in
                    let standard = registry
                    try registry.register(transport: "watched") { options, context in
                        let inner = try standard.makeTransport(transport, options: options, context: context)
                        return WatchedTransport(inner: inner, record: record)
                    }
                }
                try await withHost(client, loop: loop, log: Log(sink: log)) { bound in
                    try await body(
                        ForwardSetup(
                            loop: loop, target: target, forwards: bound.forwards.compactMap(\.self), wire: record))
                }
            }
        }
    }
}

/// Reads to the end.
func readAll(_ connection: TCPConnection) async throws -> Bytes {
    var all = Bytes()
    while let bytes = try await connection.read(upTo: 1 << 20) { all.append(contentsOf: bytes) }
    return all
}

/// Reads until the connection breaks; nil where it ends cleanly.
func endError(of connection: TCPConnection) async -> TransportError? {
    do throws(TransportError) {
        while try await connection.read(upTo: 65_536) != nil {}
        return nil
    } catch {
        return error
    }
}
