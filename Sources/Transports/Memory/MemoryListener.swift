internal import Synchronization
internal import TransportKit

/// A bound address of a ``MemoryNetwork``.
final class MemoryListener: Listener {
    let endpoint: Endpoint
    private let transport: MemoryTransport
    private let options: ListenOptions
    private let waiting = Inbox<any Socket>()
    private let paths = Mutex<[WeakPath]>([])

    private struct WeakPath {
        weak var path: MemoryPath?
    }

    init(endpoint: Endpoint, transport: MemoryTransport, options: ListenOptions) {
        self.endpoint = endpoint
        self.transport = transport
        self.options = options
    }

    func accept() async throws(Close) -> any Socket {
        try await waiting.takeFirst()
    }

    func close(_ code: CloseCode, reason: String) async {
        transport.network.release(endpoint, transport: transport.name)
        let close = waiting.end(Close(code, reason: reason, origin: .local))
        // What nobody has accepted is still in the inbox, ahead of the end.
        while let socket = try? await waiting.takeFirst() {
            await socket.close(close.code, reason: close.reason)
        }
    }

    /// Makes the two ends of a path and keeps one for `accept`.
    func connect(
        _ url: ServiceURL, options dialOptions: DialOptions, transport dialer: MemoryTransport
    ) throws(TransportError) -> any Socket {
        let path = MemoryPath(
            network: transport.network, transport: transport.name,
            dialer: (dialOptions.limits, dialOptions.keepalive.idleTimeout),
            listener: (options.limits, options.keepalive.idleTimeout))
        let hasRoom = paths.withLock { paths in
            // Looked at only where there seems to be no room: with many sockets each look takes its time.
            if paths.count >= options.limits.maxConnections { paths.removeAll { $0.path?.hasEnded ?? true } }
            guard paths.count < options.limits.maxConnections else { return false }
            paths.append(WeakPath(path: path))
            return true
        }
        guard hasRoom else {
            throw TransportError(.refused, "\(endpoint) is full: it holds \(options.limits.maxConnections) connections")
        }
        let shared = dialer.capabilities.intersection(transport.capabilities)
        let near = socket(path, .dialer, url, shared, maxMessageBytes: dialOptions.limits.maxMessageBytes)
        let far = socket(path, .listener, url, shared, maxMessageBytes: options.limits.maxMessageBytes)
        if let firstFlight = dialOptions.firstFlight { path.push([Message(firstFlight)], from: .dialer) }
        switch options.route(url.target) {
        case .accept:
            if !waiting.put(far) { path.refuse(waiting.end?.code ?? .goingAway, reason: "the listener closed") }
        case .refuse(let code):
            path.refuse(code, reason: "no route answers \(url.target)")
        }
        return near
    }

    private func socket(
        _ path: MemoryPath, _ end: PathEnd, _ url: ServiceURL, _ capabilities: Capabilities, maxMessageBytes: Int
    ) -> MemorySocket {
        let info = SocketInfo(
            transport: transport.name, capabilities: capabilities,
            protection: url.endpoint.scheme == .wss ? .transport : .none, target: url.target,
            maxMessageBytes: maxMessageBytes)
        return MemorySocket(path: path, end: end, info: info)
    }
}
