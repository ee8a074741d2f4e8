internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// One call of `dial`, with its attempts at the addresses of a name.
struct Dial: Sendable {
    let url: ServiceURL
    let options: DialOptions
    let credentials: TLSClientCredentials
    /// When the whole dial is over.
    let deadline: Instant
    let pool: LoopBound<ClientPool>

    /// Opens a connection to one address and waits until its handshake is done (R36).
    func attempt(_ address: SocketAddress) async throws(TransportError) -> LoopBound<ClientEndpoint> {
        do throws(TransportError) {
            let endpoint = try await begin(address).get()
            let handshake = await endpoint.run { $0.connection.handshake }
            while true {
                if try await endpoint.run({ $0.connection.handshakeResult }).get() {
                    let roundTrip = await endpoint.run { $0.connection.roundTrip }
                    report { options in
                        if let roundTrip { options.progress?(.measured(roundTrip)) }
                        options.progress?(.secured)
                    }
                    return endpoint
                }
                guard await handshake.wait() else {
                    await abandon(endpoint, "the dial was cancelled")
                    throw TransportError(.cancelled, "dialling QUIC to \(address) was cancelled")
                }
            }
        } catch {
            let says = error.message.contains("\(address)") ? error.message : "\(address): \(error.message)"
            let failure = TransportError(error.code, says, number: error.number)
            report { options in options.progress?(.attemptFailed(address, failure)) }
            throw failure
        }
    }

    /// Lets a connection go that is not needed.
    func abandon(_ endpoint: LoopBound<ClientEndpoint>, _ reason: String) async {
        await endpoint.run { endpoint in
            endpoint.connection.close(.normal, reason: reason, endpoint.now)
        }
    }

    private func begin(_ address: SocketAddress) async -> Result<LoopBound<ClientEndpoint>, TransportError> {
        await pool.run { [self] pool in
            options.progress?(.attempt(address))
            do throws(TransportError) {
                let session = try TLSSession.client(
                    credentials, host: url.endpoint.host, port: url.endpoint.port,
                    protocols: [options.applicationProtocol], forQUIC: true, earlyData: options.earlyData)
                var limits = options.limits
                limits.handshakeTimeout = max(deadline - pool.loop.now(), .milliseconds(1))
                let endpoint = try ClientEndpoint(
                    to: address, tls: session, limits: limits, keepalive: options.keepalive,
                    usualRoundTrip: options.usualRoundTrip,
                    early: options.earlyData ? (url.target, options.firstFlight) : nil, pool: pool)
                return .success(LoopBound(endpoint, on: pool.loop))
            } catch {
                return .failure(error)
            }
        }
    }

    private func report(_ body: @escaping @Sendable (DialOptions) -> Void) {
        guard options.progress != nil else { return }
        pool.post { [options] _ in body(options) }
    }
}
