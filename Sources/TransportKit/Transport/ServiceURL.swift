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

/// What a dialer asks for: the path and query of the URL (R5).
public struct Target: Sendable, Hashable {
    /// The longest target, in bytes of UTF-8.
    public static let limit = 4096

    /// The path with its leading slash.
    public let path: String
    /// What follows the question mark, or nil without one. It may hold a token: never log it.
    public let query: String?

    /// Reads a path and query.
    ///
    /// - Returns: nil where it is empty, longer than 4,096 bytes, does not start with a slash, or has a control
    ///   character, a space or a fragment.
    public init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.limit, text.hasPrefix("/") else { return nil }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "#") }) else { return nil }
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts[0])
        query = parts.count == 2 ? String(parts[1]) : nil
    }

    private init() {
        path = "/"
        query = nil
    }

    /// The target `/`.
    public static let root = Target()

    /// Path and query, as they go on the wire.
    public var wireForm: String { query.map { "\(path)?\($0)" } ?? path }
}

extension Target: CustomStringConvertible {
    /// The path; a query is only hinted at, because it may hold a secret (B23).
    public var description: String { query == nil ? path : "\(path)?…" }
}

/// A URL that configures every transport at once (R4): `wss://door.example:443/v1/app`.
public struct ServiceURL: Sendable, Hashable {
    /// Scheme, host and port.
    public var endpoint: Endpoint
    /// Path and query.
    public var target: Target

    /// Makes a URL from its parts.
    public init(_ endpoint: Endpoint, target: Target = .root) {
        self.endpoint = endpoint
        self.target = target
    }

    /// Reads a URL.
    ///
    /// - Throws: ``InvalidURL``, whose message says what is wrong and what is allowed.
    public init(_ text: String) throws(InvalidURL) {
        guard let separator = text.firstRange(ofASCII: "://") else {
            throw InvalidURL("has no scheme; it must start with wss:// or ws://")
        }
        guard let scheme = Endpoint.Scheme(rawValue: text[..<separator.lowerBound].lowercased()) else {
            throw InvalidURL("has an unknown scheme; wss:// and ws:// are allowed")
        }
        let rest = text[separator.upperBound...]
        let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        let (host, port) = try Self.parse(authority: rest[..<authorityEnd])
        let tail = String(rest[authorityEnd...])
        guard let target = Target(tail.isEmpty ? "/" : tail.hasPrefix("?") ? "/" + tail : tail) else {
            throw InvalidURL("has a bad path; at most 4096 bytes without spaces, control characters or a fragment")
        }
        self.init(Endpoint(scheme: scheme, host: host, port: port ?? scheme.defaultPort), target: target)
    }

    /// Reads `host`, `host:port`, `[v6]` or `[v6]:port`.
    public static func parse(authority: Substring) throws(InvalidURL) -> (Host, UInt16?) {
        if authority.contains("@") {
            throw InvalidURL("has a user name or password; credentials do not belong in a URL")
        }
        var hostText = authority
        var portText: Substring?
        if authority.hasPrefix("[") {
            guard let bracket = authority.firstIndex(of: "]") else { throw InvalidURL("lacks the bracket ']'") }
            hostText = authority[...bracket]
            let after = authority[authority.index(after: bracket)...]
            guard after.isEmpty || after.hasPrefix(":") else { throw InvalidURL("has text after the bracket ']'") }
            portText = after.isEmpty ? nil : after.dropFirst()
        } else if let colon = authority.firstIndex(of: ":") {
            hostText = authority[..<colon]
            portText = authority[authority.index(after: colon)...]
            if let portText, portText.contains(":") {
                throw InvalidURL("has an IPv6 address without brackets; write [\(authority)]")
            }
        }
        guard let host = Host(String(hostText)) else {
            throw InvalidURL("has no valid host; a name, an IPv4 address or an IPv6 address in brackets is allowed")
        }
        guard let portText else { return (host, nil) }
        guard !portText.isEmpty, portText.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(portText)
        else { throw InvalidURL("has a bad port; 0 to 65535 are allowed, 0 only to listen") }
        return (host, port)
    }

    /// What is wrong with a URL, as the end of a sentence that starts with the URL's place.
    public struct InvalidURL: Error, Sendable, Hashable, CustomStringConvertible {
        /// What is wrong and what is allowed. It does not repeat the URL, which may hold a secret.
        public let message: String

        /// Makes an error.
        public init(_ message: String) {
            self.message = message
        }

        /// The message, as a sentence.
        public var description: String { "the URL \(message)" }
    }
}

extension ServiceURL: CustomStringConvertible {
    /// The URL; a query is only hinted at, because it may hold a secret (B23).
    public var description: String { "\(endpoint)\(target)" }
}

extension String {
    fileprivate func firstRange(ofASCII needle: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(needle) { return start..<index(start, offsetBy: needle.count) }
            start = index(after: start)
        }
        return nil
    }
}
