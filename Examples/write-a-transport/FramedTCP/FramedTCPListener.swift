internal import TransportIO
internal import TransportKit

/// A bound address. Each connection names its target in a task of its own, so that a slow one holds nobody up.
final class FramedTCPListener: Listener {
    let endpoint: Endpoint
    private let listener: TCPListener
    private let sockets = Inbox<any Socket>()
    private let serving: Task<Void, Never>

    init(_ listener: TCPListener, endpoint: Endpoint, options: ListenOptions, readBytes: Int) {
        self.listener = listener
        self.endpoint = Endpoint(scheme: endpoint.scheme, host: endpoint.host, port: listener.localAddress.port)
        serving = Task(executorPreference: listener.loop) { [sockets] in
            await withDiscardingTaskGroup { group in
                while let connection = try? await listener.accept() {
                    let wire = FramedTCPWire(connection: connection, limits: options.limits, readBytes: readBytes)
                    group.addTask { await Self.greet(wire, options, sockets) }
                }
                group.cancelAll()
            }
        }
    }

    deinit { serving.cancel() }

    func accept() async throws(Close) -> any Socket { try await sockets.takeFirst() }

    func close(_ code: CloseCode, reason: String) async {
        let end = sockets.end(Close(code, reason: reason, origin: .local))
        await listener.close()
        await serving.value
        // What nobody has accepted is still in the inbox, ahead of the end.
        while let socket = try? await sockets.takeFirst() { await socket.close(end.code, reason: end.reason) }
    }

    /// Reads the target and hands out the socket, or closes it with the code that says why not.
    private static func greet(_ wire: FramedTCPWire, _ options: ListenOptions, _ sockets: Inbox<any Socket>) async {
        var parser = wire.makeParser()
        guard let text = await firstFrame(wire, &parser, within: options.limits.handshakeTimeout) else {
            // A dial that only learns whether it would work ends here, and so does one that takes too long.
            return await wire.connection.close()
        }
        let target = String(validating: text).flatMap { Target($0) }
        let socket = wire.socket(target: target ?? .root, parser: parser)
        switch target.map(options.route) {
        case nil: await socket.close(.badTarget, reason: "the target cannot be read")
        case .refuse(let code): await socket.close(code, reason: "no route answers \(socket.info.target)")
        case .accept: if !sockets.put(socket) { await socket.close(.goingAway, reason: "the listener closed") }
        }
    }

    private static func firstFrame(
        _ wire: FramedTCPWire, _ parser: inout LengthPrefixedMessages, within limit: Duration
    ) async -> Bytes? {
        // Cancelled as soon as this returns.
        async let _: Void = {
            if (try? await wire.connection.loop.sleep(for: limit)) != nil { await wire.connection.reset() }
        }()
        return try? await wire.next(&parser)
    }
}
