internal import NoiseCarrier
internal import TransportKit

/// The half of a hash by which a public key is known on the wire: 16 bytes, or 26 characters of base32.
struct KeyID: Sendable, Hashable {
    static let length = 16
    static let textLength = 26

    /// The first and the last eight bytes, big-endian.
    let high: UInt64
    let low: UInt64

    /// Hashes `label`, a zero and the key.
    init(label: String, key: StaticPublicKey) {
        let hash = Hash.sha256(Bytes(label), [0], key.bytes)
        self.init(hash.prefix(Self.length))
    }

    /// Takes exactly 16 bytes.
    init(_ bytes: Bytes) {
        precondition(bytes.count == Self.length, "an id has 16 bytes")
        high = bytes.bigEndian(at: 0)
        low = bytes.bigEndian(at: 8)
    }

    /// Reads the text form; nil where it is not the one form that is written.
    init?(text: String) {
        guard text.utf8.count == Self.textLength else { return nil }
        // 26 characters hold 130 bits; the last two are none of the id's.
        var bits: (high: UInt64, low: UInt64) = (0, 0)
        var spare: UInt64 = 0
        for (index, character) in text.utf8.enumerated() {
            guard let digit = Self.alphabet.firstIndex(of: character).map(UInt64.init) else { return nil }
            let width = index == Self.textLength - 1 ? 3 : 5
            if width == 3 { spare = digit & 3 }
            bits.high = bits.high << UInt64(width) | bits.low >> UInt64(64 - width)
            bits.low = bits.low << UInt64(width) | digit >> UInt64(5 - width)
        }
        guard spare == 0 else { return nil }
        (high, low) = bits
    }

    var text: String {
        var text = ""
        for index in 0..<Self.textLength {
            // The five bits that end at this place, counted from the low end of 130.
            let shift = 125 - 5 * index
            text.unicodeScalars.append(Unicode.Scalar(Self.alphabet[Int(bits(at: shift))]))
        }
        return text
    }

    func append(to bytes: inout Bytes) {
        bytes.append(bigEndian: high)
        bytes.append(bigEndian: low)
    }

    /// Five of the 130 bits, of which the last two are zero.
    private func bits(at shift: Int) -> UInt64 {
        let shift = shift - 2
        if shift < 0 { return low << UInt64(-shift) & 31 }
        if shift >= 64 { return high >> UInt64(shift - 64) & 31 }
        return (low >> UInt64(shift) | (shift == 0 ? 0 : high << UInt64(64 - shift))) & 31
    }

    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)
}
