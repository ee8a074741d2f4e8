public import TransportKit

/// A TCP address as a config file or a stream header writes it: `tcp://host:port`.
public struct TCPEndpoint: Sendable, Hashable {
    /// The host.
    public var host: Host
    /// The port; 0 only where a listener may take any.
    public var port: UInt16

    /// Makes an address.
    public init(host: Host, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Reads an address.
    ///
    /// - Throws: an error whose message says what is wrong and what is allowed.
    public init(_ text: String, allowsAnyPort: Bool = false) throws(ServiceURL.InvalidURL) {
        guard text.lowercased().hasPrefix("tcp://") else {
            throw ServiceURL.InvalidURL("must have the form tcp://host:port")
        }
        let authority = text.dropFirst(6)
        guard !authority.contains(where: { $0 == "/" || $0 == "?" || $0 == "#" }) else {
            throw ServiceURL.InvalidURL("has a path; tcp://host:port is all that is allowed")
        }
        let (host, port) = try ServiceURL.parse(authority: authority)
        guard let port else { throw ServiceURL.InvalidURL("has no port; tcp://host:port is allowed") }
        guard port > 0 || allowsAnyPort else { throw ServiceURL.InvalidURL("has port 0; 1 to 65535 are allowed") }
        self.init(host: host, port: port)
    }
}

extension TCPEndpoint: CustomStringConvertible {
    /// The address as it is written.
    public var description: String { "tcp://\(host):\(port)" }
}

extension TCPEndpoint: Decodable {
    /// Reads an address from its text.
    public init(from decoder: any Decoder) throws {
        try self.init(try decoder.singleValueContainer().decode(String.self))
    }
}
