/// The variable-length integer of QUIC (RFC 9000 §16): one, two, four or eight bytes, up to 2^62 − 1.
public enum Varint {
    /// The largest value that can be written.
    public static let max: UInt64 = (1 << 62) - 1

    /// How many bytes the shortest form of `value` takes.
    public static func length(of value: UInt64) -> Int {
        switch value {
        case 0..<(1 << 6): 1
        case 0..<(1 << 14): 2
        case 0..<(1 << 30): 4
        default: 8
        }
    }

    /// Writes the shortest form of `value` at the end of `bytes`.
    ///
    /// - Precondition: `value` is at most ``max``.
    public static func append(_ value: UInt64, to bytes: inout Bytes) {
        precondition(value <= max, "a varint holds 62 bits")
        let length = length(of: value)
        // The two top bits of the first byte hold the logarithm of the length.
        let marked = value | UInt64(length.trailingZeroBitCount) << UInt64(length * 8 - 2)
        for index in (0..<length).reversed() {
            bytes.append(UInt8(truncatingIfNeeded: marked >> UInt64(index * 8)))
        }
    }

    /// Reads a varint at `offset`, in any of its forms.
    ///
    /// - Returns: the value and how many bytes it took, or nil where `bytes` ends before the varint does.
    public static func read(from bytes: Bytes, at offset: Int = 0) -> (value: UInt64, length: Int)? {
        guard offset < bytes.count else { return nil }
        let first = bytes[offset]
        let length = 1 << Int(first >> 6)
        guard bytes.count - offset >= length else { return nil }
        var value = UInt64(first & 0x3f)
        for index in 1..<Swift.max(length, 1) {
            value = value << 8 | UInt64(bytes[offset + index])
        }
        return (value, length)
    }
}
