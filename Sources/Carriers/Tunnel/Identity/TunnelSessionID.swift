/// The `sid`: by what number the ends of a tunnel know one session. Every handshake draws a new one (R79).
public struct TunnelSessionID: Sendable, Hashable, RawRepresentable {
    /// The number; on the wire eight bytes, big-endian.
    public let rawValue: UInt64

    /// Makes an id of any number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Draws a new id.
    public static func random() -> TunnelSessionID { TunnelSessionID(rawValue: .random(in: 0 ... .max)) }
}

extension TunnelSessionID: CustomStringConvertible {
    /// 16 hexadecimal digits.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
