package import TransportIO
package import TransportKit

/// Where to dial and how, as the command line says it: the options of a `direct` carrier.
package struct DialSettings: Sendable {
    /// The service.
    package var url: ServiceURL
    /// The transports to race; nil for the usual ones.
    package var transports: [String]?
    /// The hashes of certificates or keys that are accepted.
    package var pins: [PublicKeyHash]
    /// A file with the certificates that are trusted; nil for the machine's own.
    package var trustFile: String?
    /// The name to find in the certificate, where it is not the URL's host.
    package var serverName: String?
    /// How long a dial may take.
    package var timeout: Duration?
    /// What the link is for.
    var role = LinkRole.peer

    /// The shortest time that a dial may be given.
    package static var leastTimeout: Duration { LimitsOptions.leastHandshake }

    package init(
        url: ServiceURL, transports: [String]? = nil, pins: [PublicKeyHash] = [], trustFile: String? = nil,
        serverName: String? = nil, timeout: Duration? = nil
    ) {
        self.url = url
        self.transports = transports
        self.pins = pins
        self.trustFile = trustFile
        self.serverName = serverName
        self.timeout = timeout
    }

    /// Makes the carrier; dials nothing.
    package func makeCarrier(loop: EventLoop, log: Log, limits change: (inout Limits) -> Void) throws -> any Carrier {
        let registry = try StandardRegistry.make(loop: loop)
        var context = BuildContext(executor: loop, time: loop, log: log).resolving(by: registry)
        context.role = role
        var limits = Limits()
        limits.handshakeTimeout = timeout ?? limits.handshakeTimeout
        change(&limits)
        return try registry.makeCarrier("direct", options: FixedOptions(options(limits)), context: context)
    }

    private func options(_ limits: Limits) -> DirectOptions {
        var tls: ClientTLSOptions?
        if url.endpoint.scheme == .wss {
            tls = ClientTLSOptions(
                trust: trustFile.map { .file($0, isOptional: false) }, pin: OneOrMore(pins.map(Pin.init)),
                serverName: serverName)
        }
        return DirectOptions(
            url: DialledURL(url), transports: transports, tls: tls,
            limits: LimitsOptions(
                handshakeTimeout: TimeLimit(limits.handshakeTimeout), linger: TimeLimit(limits.linger)))
    }
}
