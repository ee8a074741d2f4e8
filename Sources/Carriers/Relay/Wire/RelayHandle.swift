internal import CSodium
internal import TransportKit

/// The name of a room for one hour: whoever holds the secret can work it out, and the relay cannot.
package struct RelayHandle: Sendable, Hashable {
    /// How many bytes it has.
    package static let length = 16

    /// 32 hexadecimal digits in lower case.
    package let text: String

    /// Reads a handle; nil for anything but 32 hexadecimal digits in lower case.
    package init?(_ text: String) {
        guard text.utf8.count == 2 * Self.length else { return nil }
        for digit in text.utf8 {
            guard (0x30...0x39).contains(digit) || (0x61...0x66).contains(digit) else { return nil }
        }
        self.text = text
    }

    init(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count == Self.length, "a handle has 16 bytes")
        let digits = Array("0123456789abcdef")
        text = String(unsafe bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    /// Its first 16 bits, by which the turn of the epoch is spread.
    package var spread: UInt16 { UInt16(text.prefix(4), radix: 16) ?? 0 }
}
