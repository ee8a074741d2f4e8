/// Checks UTF-8 that arrives in pieces, and finds the first wrong byte as soon as it is there (RFC 6455 §8.1).
package struct TextCheck {
    /// Makes a check that has seen nothing.
    package init() {}

    // Continuation bytes that the character under way still needs, and what the next one may be (RFC 3629 §4).
    private var needed = 0
    private var lower: UInt8 = 0x80
    private var upper: UInt8 = 0xbf

    /// Whether the text so far ends with a whole character.
    package var isComplete: Bool { needed == 0 }

    /// Looks at the next piece.
    ///
    /// - Returns: false where no text can begin like this; the check is then over.
    package mutating func accepts(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count {
            if needed == 0 {
                index = unsafe Self.skipASCII(bytes, from: index)
                guard index < bytes.count else { return true }
            }
            guard unsafe accepts(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    /// Eight bytes at a time, since most text is ASCII.
    private static func skipASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index + 8 <= bytes.count {
            let word = unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard word & 0x8080_8080_8080_8080 == 0 else { break }
            index += 8
        }
        while index < bytes.count, unsafe bytes[index] < 0x80 { index += 1 }
        return index
    }

    private mutating func accepts(_ byte: UInt8) -> Bool {
        guard needed == 0 else {
            guard byte >= lower, byte <= upper else { return false }
            needed -= 1
            (lower, upper) = (0x80, 0xbf)
            return true
        }
        switch byte {
        case 0x00...0x7f: return true
        case 0xc2...0xdf: needed = 1
        // The second byte is bounded where the character could be written shorter, is a surrogate or is past U+10FFFF.
        case 0xe0: (needed, lower) = (2, 0xa0)
        case 0xed: (needed, upper) = (2, 0x9f)
        case 0xe1...0xec, 0xee, 0xef: needed = 2
        case 0xf0: (needed, lower) = (3, 0x90)
        case 0xf4: (needed, upper) = (3, 0x8f)
        case 0xf1...0xf3: needed = 3
        default: return false
        }
        return true
    }
}
