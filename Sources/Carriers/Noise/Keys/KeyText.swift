internal import CSodium
internal import TransportKit

/// The text form of keys: base64url without padding, written and read in a time that does not depend on the key.
enum KeyText {
    private static let variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING
    /// How many characters a key has.
    static let length = 43
    static let hexLength = 64

    static func write(_ key: UnsafeRawBufferPointer) -> String {
        Sodium.start()
        // The library ends the text with a zero.
        return unsafe String(unsafeUninitializedCapacity: length + 1) { room in
            unsafe room.withMemoryRebound(to: CChar.self) { room in
                guard let start = room.baseAddress else { return }
                _ = unsafe sodium_bin2base64(
                    start, room.count, key.assumingMemoryBound(to: UInt8.self).baseAddress, key.count, variant)
            }
            return length
        }
    }

    /// Reads the text form, or 64 hexadecimal digits, into `key`.
    ///
    /// - Returns: whether it was a key.
    static func read(_ text: String, into key: borrowing Secret) -> Bool {
        var text = text
        return text.withUTF8 { text in
            unsafe text.withMemoryRebound(to: CChar.self) { text in
                var count = 0
                // Without a pointer for the end of the text all of it must be digits.
                let status =
                    text.count == hexLength
                    ? unsafe sodium_hex2bin(key.pointer, key.count, text.baseAddress, text.count, nil, &count, nil)
                    : unsafe sodium_base642bin(
                        key.pointer, key.count, text.baseAddress, text.count, nil, &count, nil, variant)
                return status == 0 && count == key.count
            }
        }
    }
}
