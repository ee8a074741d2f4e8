internal import TransportKit

/// The form of a message of a session (part 2.2): its number in big-endian order, the sealed text, the tag.
enum TransportMessage {
    /// The number is sent in the clear, and is the associated data.
    static let numberLength = 8
    static let overhead = numberLength + Sodium.tagLength
    /// Reserved by Noise, so no message has it.
    static let reservedNumber = UInt64.max

    static func number(of message: Bytes) -> UInt64 {
        unsafe message.withUnsafeBytes { UInt64(bigEndian: unsafe $0.loadUnaligned(as: UInt64.self)) }
    }
}
