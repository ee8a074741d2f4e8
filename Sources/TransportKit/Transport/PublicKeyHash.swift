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
