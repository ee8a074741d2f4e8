/// The host part of a URL: a name, or an address written out.
public enum Host: Sendable, Hashable {
    /// A DNS name in ASCII, lower case, without a trailing dot.
    case name(String)
    /// An IPv4 address as its four bytes.
    case ipv4(IPv4Address)
    /// An IPv6 address with an optional scope, such as an interface name (RFC 4007 §11).
    case ipv6(IPv6Address, scope: String?)

    /// Reads a host as it stands in a URL, IPv6 in brackets, or bare.
    ///
    /// - Returns: nil where it is neither an address nor a name of letters, digits, hyphens and dots. A name with other
    ///   characters must be given in its `xn--` form.
    public init?(_ text: String) {
        if text.hasPrefix("["), text.hasSuffix("]") {
            guard let host = Self.parseIPv6(String(text.dropFirst().dropLast())) else { return nil }
            self = host
        } else if let address = IPv4Address(text) {
            self = .ipv4(address)
        } else if text.contains(":") {
            guard let host = Self.parseIPv6(text) else { return nil }
            self = host
        } else {
            guard let name = Self.normalizedName(text) else { return nil }
            self = .name(name)
        }
    }

    private static func parseIPv6(_ text: String) -> Host? {
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPv6Address(String(parts[0])) else { return nil }
        guard parts.count == 2 else { return .ipv6(address, scope: nil) }
        // RFC 6874 writes the percent sign of a scope as `%25` in a URL.
        let scope = parts[1].hasPrefix("25") && parts[1].count > 2 ? String(parts[1].dropFirst(2)) : String(parts[1])
        let allowed = scope.utf8.allSatisfy { isLetterOrDigit($0) || [UInt8(ascii: "."), 0x2d, 0x5f].contains($0) }
        guard !scope.isEmpty, allowed else { return nil }
        return .ipv6(address, scope: scope)
    }

    /// RFC 1123 §2.1: labels of letters, digits and hyphens; underscores are let through because they exist.
    private static func normalizedName(_ text: String) -> String? {
        var name = text.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        guard !name.isEmpty, name.utf8.count <= 253 else { return nil }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        for label in labels {
            guard (1...63).contains(label.utf8.count), !label.hasPrefix("-"), !label.hasSuffix("-") else { return nil }
            guard label.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == 0x2d || $0 == 0x5f }) else { return nil }
        }
        // A last label that is a number makes it a malformed IPv4 address, not a name (WHATWG URL §3.5): resolvers take
        // 0x7f000001 for 127.0.0.1, and a rule about names must not be passed by an address.
        guard let last = labels.last, !isNumber(last) else { return nil }
        return name
    }

    private static func isNumber(_ label: Substring) -> Bool {
        if label.hasPrefix("0x") {
            return label.dropFirst(2).utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        }
        return label.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte) || (0x41...0x5a).contains(byte)
    }

    /// Whether it is an address, for which TLS sends no server name (RFC 6066 §3).
    public var isLiteral: Bool {
        switch self {
        case .name: false
        case .ipv4, .ipv6: true
        }
    }

    /// The host without brackets, as a resolver or a certificate wants it.
    public var bare: String {
        switch self {
        case .name(let name): name
        case .ipv4(let address): address.description
        case .ipv6(let address, let scope): address.description + (scope.map { "%\($0)" } ?? "")
        }
    }
}

extension Host: CustomStringConvertible {
    /// The host as it stands in a URL, IPv6 in brackets.
    public var description: String {
        switch self {
        case .name, .ipv4: bare
        case .ipv6: "[\(bare)]"
        }
    }
}
