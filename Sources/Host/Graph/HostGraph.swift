public import TransportKit

/// Everything that a config file asks for, made and checked, and nothing of it bound or dialled yet.
///
/// `transportkit check` makes one and stops there; `transportkit run` makes the same one and runs it, so both say the
/// same about a file.
public struct HostGraph: Sendable {
    /// The lowest level that is logged.
    public let logLevel: LogLevel
    /// How long transfers may go on once the host was asked to stop.
    public let grace: Duration

    let listeners: [ListenerPlan]
    let forwards: [ForwardPlan]
    let carriers: [String: any Carrier]
    /// The box that the host is, if it is one.
    let box: BoxPlan?

    /// Makes everything that a config file asks for.
    ///
    /// - Parameters:
    ///   - configuration: the file.
    ///   - registry: the plug-ins it may name.
    ///   - context: what the plug-ins may use; names and paths are resolved by the graph itself.
    ///   - allowsAnyPort: whether port 0 may be listened on. A program that asks for the port afterwards may want that;
    ///     in a file it is a slip.
    /// - Throws: every error that one run can find.
    public init(
        _ configuration: HostConfiguration, registry: Registry, context: BuildContext, allowsAnyPort: Bool = false
    ) throws(ConfigErrors) {
        let builder = GraphBuilder(
            configuration, registry: registry, context: context, allowsAnyPort: allowsAnyPort)
        self = try builder.build()
    }

    init(
        logLevel: LogLevel, grace: Duration, listeners: [ListenerPlan], forwards: [ForwardPlan],
        carriers: [String: any Carrier], box: BoxPlan? = nil
    ) {
        self.logLevel = logLevel
        self.grace = grace
        self.listeners = listeners
        self.forwards = forwards
        self.carriers = carriers
        self.box = box
    }
}

/// A listener as the config file wants it.
struct ListenerPlan: Sendable {
    /// Where its certificate comes from.
    enum Certificate: Sendable {
        case files(CertificateFiles)
        /// Made on the first start.
        case selfSigned(names: [String], directory: String)
    }

    var name: String
    var endpoint: Endpoint
    var transports: [any Transport]
    var certificate: Certificate?
    var clientPins: [PublicKeyHash]?
    /// Whether it gives out TLS tickets, and takes early data with them.
    var tickets = true
    var earlyData = false
    var limits: Limits
    var keepalive: Keepalive
    /// The services by the path that they answer.
    var routes: [String: any Service]
}

/// A listening forward as the config file wants it.
struct ForwardPlan: Sendable {
    var listen: TCPEndpoint
    var carrier: String
    var to: ForwardTarget
    /// Whether the host runs without it where its port is taken.
    var isOptional: Bool
    /// How long a connection waits for the carrier.
    var patience: Duration
}
