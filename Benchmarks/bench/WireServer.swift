internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// A listener of both transports with the routes that the measuring commands ask for.
enum WireServer {
    static let commands = [
        Command(name: "serve", usage: "URL --state DIRECTORY", run: { arguments in try await serve(&arguments) })
    ]

    private static func serve(_ arguments: inout Arguments) async throws {
        let state = try arguments.flag("state") ?? "."
        let endpoint = try ServiceURL(arguments.required("URL")).endpoint
        let wires = try Wires()
        var options = ListenOptions()
        var names = ["websocket"]
        if endpoint.scheme == .wss {
            let identity = try SelfSignedCertificate.makeIfMissing(
                names: ["localhost", "127.0.0.1", "::1"], directory: state)
            options.security = ServerSecurity(identity: identity)
            names = ["websocket", "quic"]
        }
        var listeners: [any Listener] = []
        for name in names {
            listeners.append(try await wires.transport(name).listen(endpoint, options: options))
        }
        Bench.ready()
        await withTaskGroup(of: Void.self) { group in
            for listener in listeners {
                group.addTask(executorPreference: wires.loop) {
                    await withDiscardingTaskGroup { sockets in
                        while let socket = try? await listener.accept() {
                            sockets.addTask(executorPreference: wires.loop) {
                                switch socket.info.target.path {
                                case "/source": await source(socket)
                                default: await echo(socket)
                                }
                                await socket.close()
                            }
                        }
                    }
                }
            }
        }
    }

    /// Sends each message back.
    private static func echo(_ socket: any Socket) async {
        while let messages = try? await socket.receive() {
            guard (try? await socket.send(messages)) != nil else { return }
        }
    }

    /// Answers eight bytes on a stream, a count, with that many bytes.
    private static func source(_ socket: any Socket) async {
        let block = Bytes(repeating: 7, count: 1 << 18)
        while let stream = try? await socket.acceptStream() {
            var request = Bytes()
            while request.count < 8, let part = try? await stream.read(upTo: 8 - request.count) {
                request.append(contentsOf: part)
            }
            guard request.count == 8 else { continue }
            var left = request.reduce(0) { $0 << 8 | Int($1) }
            do {
                while left > 0 {
                    let step = min(left, block.count)
                    try await stream.write(block.prefix(step))
                    left -= step
                }
                try await stream.finish()
            } catch {
                continue
            }
        }
    }
}
