/// Where a listener listens or a dialer dials: a scheme, a host and a port.
public struct Endpoint: Sendable, Hashable {
    /// The scheme of a URL.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// Protected by TLS; the default port is 443.
        case wss
        /// Plain; the default port is 80. QUIC has no plain form and refuses it.
        case ws

        /// The port where the URL names none.
        public var defaultPort: UInt16 {
            switch self {
            case .wss: 443
            case .ws: 80
            }
        }
    }

    /// The scheme.
    public var scheme: Scheme
    /// The host.
    public var host: Host
    /// The port; a listener may ask for 0 and is told the one it got.
    public var port: UInt16

    /// Makes an end point.
    public init(scheme: Scheme, host: Host, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Host and port as HTTP's `Host` header has them: the port only where it is not the scheme's own.
    public var authority: String { port == scheme.defaultPort ? "\(host)" : "\(host):\(port)" }
}

extension Endpoint: CustomStringConvertible {
    /// For example `wss://door.example:8443`.
    public var description: String { "\(scheme.rawValue)://\(host):\(port)" }
}
