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
