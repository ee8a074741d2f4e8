/// The SHA-256 of a public key (SubjectPublicKeyInfo) or of a whole certificate, in DER.
public struct PublicKeyHash: Sendable, Hashable {
    /// The 32 bytes.
    public let bytes: Bytes

    /// Makes a hash from its 32 bytes; nil for any other count.
    public init?(_ bytes: Bytes) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// Reads the text form `sha256:` and 64 hexadecimal digits; colons between the digits are let through.
    public init?(_ text: String) {
        guard text.lowercased().hasPrefix("sha256:") else { return nil }
        let digits = text.dropFirst(7).filter { $0 != ":" }
        guard digits.utf8.count == 64 else { return nil }
        var bytes = Bytes(capacity: 32)
        var rest = digits[...]
        while !rest.isEmpty {
            let pair = rest.prefix(2)
            guard !pair.hasPrefix("+"), !pair.hasPrefix("-"), let byte = UInt8(pair, radix: 16) else { return nil }
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        self.bytes = bytes
    }
}

extension PublicKeyHash: CustomStringConvertible {
    /// The text form: `sha256:` and 64 hexadecimal digits.
    public var description: String {
        "sha256:"
            + bytes.map { byte in
                let digits = String(byte, radix: 16)
                return digits.count == 1 ? "0" + digits : digits
            }.joined()
    }
}

/// How a dialer makes sure of the service it reaches. The same rules hold on every transport.
public struct ClientSecurity: Sendable, Hashable {
    /// Whose signatures count.
    public enum Trust: Sendable, Hashable {
        /// The machine's own trust store.
        case system
        /// The certificates in a PEM file, and nothing else. It is read again on every dial.
        case file(String)
        /// The certificates in this PEM text, and nothing else.
        case pem(String)
    }

    /// Whose signatures count; not asked where `pins` are given.
    public var trust: Trust
    /// The certificates or public keys that are accepted, and no others. A match is enough: name, issuer and dates are
    /// then not looked at, because the key itself is what was agreed on (RFC 7671 §5.1).
    public var pins: [PublicKeyHash]
    /// The name to ask for and to find in the certificate, where it is not the URL's host (B61).
    public var serverName: String?
    /// This end's own certificate, for a service that asks for one.
    public var identity: CertificateFiles?

    /// Makes the rules of a dialer.
    public init(
        trust: Trust = .system, pins: [PublicKeyHash] = [], serverName: String? = nil,
        identity: CertificateFiles? = nil
    ) {
        self.trust = trust
        self.pins = pins
        self.serverName = serverName
        self.identity = identity
    }
}

/// A certificate chain and its private key, as PEM files.
public struct CertificateFiles: Sendable, Hashable {
    /// The file with the chain, the end's own certificate first.
    public var certificate: String
    /// The file with the private key.
    public var key: String

    /// Names the files.
    public init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// What a listener shows its clients and asks of them.
public struct ServerSecurity: Sendable, Hashable {
    /// The certificate it shows.
    public var identity: CertificateFiles
    /// The client certificates or keys that are let in; nil asks for none, an empty list lets nobody in.
    public var clientPins: [PublicKeyHash]?

    /// Makes the rules of a listener.
    public init(identity: CertificateFiles, clientPins: [PublicKeyHash]? = nil) {
        self.identity = identity
        self.clientPins = clientPins
    }
}
