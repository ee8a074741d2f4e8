public import TransportKit

/// The in-process transport: two ends of one process talk over a ``MemoryNetwork``, with the whole contract of a socket
/// and without a wire. Tests use it in simulated time; programs use it to talk to themselves.
///
/// It can stand in for another wire: give it that wire's name and capabilities.
public struct MemoryTransport: Transport {
    /// The network it dials and listens on.
    public let network: MemoryNetwork
    /// The name under which it is registered.
    public let name: TransportName
    /// What its sockets can do.
    public let capabilities: Capabilities
    /// How many round trips a dial takes.
    public let roundTrips: Int

    /// Makes a transport on a network.
    public init(
        network: MemoryNetwork, name: TransportName = .memory,
        capabilities: Capabilities = [.streams, .datagrams, .text], roundTrips: Int = 1
    ) {
        self.network = network
        self.name = name
        self.capabilities = capabilities
        self.roundTrips = roundTrips
    }

    /// Opens a socket to a listener of the same name on the same network.
    ///
    /// A target without a route is answered like on QUIC: the socket opens, and its peer closes it with the code.
    public func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        let start = network.time.now()
        network.record(MemoryNetwork.Dial(transport: name, url: url, start: start))
        try await shakeHands(with: url, start: start, limits: options.limits)
        guard let listener = network.listener(at: url.endpoint, transport: name) else {
            throw TransportError(.refused, "\(url.endpoint.host):\(url.endpoint.port) refused the connection")
        }
        options.progress?(.secured)
        if let claim = options.claim, !claim.take() {
            throw TransportError(.superseded, "another dial had already won")
        }
        let socket = try listener.connect(url, options: options, transport: self)
        options.progress?(.opened)
        return socket
    }

    /// Binds an address of the network; 0.0.0.0 and [::] answer for every host.
    public func listen(
        _ endpoint: Endpoint, options: ListenOptions
    ) async throws(TransportError) -> any Listener {
        try network.bind(endpoint, transport: name) { endpoint in
            MemoryListener(endpoint: endpoint, transport: self, options: options)
        }
    }

    /// Takes the time of the round trips and meets whatever is scripted on the way.
    private func shakeHands(with url: ServiceURL, start: Instant, limits: Limits) async throws(TransportError) {
        let limit = start + limits.handshakeTimeout
        let changed = Signal()
        network.watch(changed)
        defer { network.unwatch(changed) }
        while true {
            let faults = network.faults(of: name)
            let roundTrip = faults.delay * 2
            let answer = start + (faults.refusal == nil ? roundTrip * roundTrips : roundTrip)
            let now = network.time.now()
            if !faults.isSilent, now >= answer {
                if let refusal = faults.refusal { throw refusal }
                if Task.isCancelled { throw TransportError(.cancelled, "the dial was cancelled") }
                return
            }
            if now >= limit {
                throw TransportError(
                    .timedOut,
                    "\(url.endpoint.host):\(url.endpoint.port) gave no answer within \(limits.handshakeTimeout.inWords)"
                )
            }
            let due = faults.isSilent ? limit : min(answer, limit)
            let alarm = Alarm(changed, at: due, time: network.time, executor: network.executor)
            let isWoken = await changed.wait()
            alarm.cancel()
            if !isWoken { throw TransportError(.cancelled, "the dial was cancelled") }
        }
    }
}
