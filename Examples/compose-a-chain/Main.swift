internal import DirectCarrier
internal import MuxCarrier
internal import QUICTransport
internal import TransportIO
internal import TransportKit
internal import TransportTLS
internal import WebSocketTransport

/// A chain from end to end in one program: a listener of both transports, a carrier that races them, a link that keeps a
/// session open, a message and a stream through it, and a session that is lost and comes back.
@main
struct Main {
    static func main() async throws {
        let loop = try EventLoop(name: "example")
        // All of a chain shares one loop, so a message climbs from packet to application without changing threads.
        try await Task(executorPreference: loop) { try await Main.run(on: loop) }.value
        await loop.shutdown()
    }

    private static func run(on loop: EventLoop) async throws {
        let transports: [any Transport] = [
            QUICTransport(loop: loop),
            WebSocketTransport(loop: loop, multiplexer: YamuxMultiplexer(executor: loop, time: loop)),
        ]
        let certificate = try SelfSignedCertificate.makeIfMissing(
            names: ["127.0.0.1"], directory: "/tmp/transportkit-example-\(loop.now().nanoseconds)")
        let (listeners, endpoint) = try await listen(transports, certificate)

        var options = DialOptions()
        options.security.trust = .file(certificate.certificate)
        let carrier = try DirectCarrier(
            url: ServiceURL(endpoint), transports: transports, options: options,
            context: BuildContext(executor: loop, time: loop))
        let link = Link(carrier, executor: loop, time: loop)

        await withThrowingTaskGroup(of: Void.self) { group in
            for listener in listeners { group.addTask(executorPreference: loop) { await answer(listener) } }
            group.addTask(executorPreference: loop) { await link.run() }
            do {
                try await converse(over: link, carrier)
            } catch {
                print("failed: \(error)")
            }
            group.cancelAll()
        }
        for listener in listeners { await listener.close() }
    }

    /// What a program does with a chain: ask the link for its socket and talk.
    private static func converse(over link: Link, _ carrier: DirectCarrier) async throws {
        let socket = try await link.socket()
        print(carrier.reports.last?.why ?? "")
        try await socket.send(Message(Bytes("a message")))
        for message in try await socket.receive() { print("echo: \(String(validating: message.payload) ?? "")") }

        let stream = try await socket.openStream()
        try await stream.write(Bytes("bytes on a stream"))
        try await stream.finish()
        while let bytes = try await stream.read(upTo: 1024) { print("echo: \(String(validating: bytes) ?? "")") }

        // A session that ends is replaced; whoever asks the link again gets the new one.
        await socket.close(.goingAway, reason: "the example lets it go")
        let next = try await link.socket()
        try await next.send(Message(Bytes("a message on the next session")))
        for message in try await next.receive() { print("echo: \(String(validating: message.payload) ?? "")") }
    }

    // MARK: - The other end

    /// Both transports on one port number: the first takes a free one, the others follow.
    private static func listen(
        _ transports: [any Transport], _ certificate: CertificateFiles
    ) async throws -> ([any Listener], Endpoint) {
        var options = ListenOptions()
        options.security = ServerSecurity(identity: certificate)
        var endpoint = Endpoint(scheme: .wss, host: .ipv4(.loopback), port: 0)
        var listeners: [any Listener] = []
        for transport in transports {
            let listener = try await transport.listen(endpoint, options: options)
            endpoint = listener.endpoint
            listeners.append(listener)
        }
        return (listeners, endpoint)
    }

    /// Answers every message and every stream of every socket with its own bytes.
    private static func answer(_ listener: any Listener) async {
        await withDiscardingTaskGroup { group in
            while let socket = try? await listener.accept() {
                group.addTask {
                    while let messages = try? await socket.receive(), (try? await socket.send(messages)) != nil {}
                }
                group.addTask {
                    while let stream = try? await socket.acceptStream() {
                        while let bytes = try? await stream.read(upTo: 1 << 16) { try? await stream.write(bytes) }
                        try? await stream.finish()
                    }
                }
            }
        }
    }
}
