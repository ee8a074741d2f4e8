/// An IPv4 address.
public struct IPv4Address: Sendable, Hashable {
    /// The address in host byte order: 127.0.0.1 is `0x7f000001`.
    public let value: UInt32

    /// Makes an address from its number in host byte order.
    public init(value: UInt32) {
        self.value = value
    }

    /// 127.0.0.1
    public static let loopback = IPv4Address(value: 0x7f00_0001)
    /// 0.0.0.0, every address of the machine.
    public static let any = IPv4Address(value: 0)

    /// Reads four decimal numbers with dots between them; no short or octal forms.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var value: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = UInt8(part), part.count == 1 || !part.hasPrefix("0")
            else { return nil }
            value = value << 8 | UInt32(number)
        }
        self.value = value
    }
}

extension IPv4Address: CustomStringConvertible {
    /// Four decimal numbers with dots between them.
    public var description: String { "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)" }
}
