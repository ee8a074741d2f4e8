/// Collects the bytes of one frame header until it is whole, and takes the mask off it.
///
/// It looks at the lengths alone; whether the header keeps the rules is wslay's to say.
struct PartialHead {
    /// A whole header.
    struct Whole {
        fileprivate var bytes: (UInt64, UInt64)
        fileprivate let count: Int
        /// The kind of frame, one of ``Opcode`` or a reserved number.
        let opcode: UInt8
        /// How many bytes of payload it announces.
        let length: UInt64
        /// The mask, its bytes in the order of memory; nil without one.
        let key: UInt32?

        /// Gives `body` the header as it would be without a mask.
        func withUnmaskedBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
            unsafe withUnsafeBytes(of: bytes) { unsafe body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        }
    }

    // The longest header has 14 bytes.
    private var bytes: (UInt64, UInt64) = (0, 0)
    private var count = 0

    /// Takes bytes off `rest` until the header is whole.
    ///
    /// - Returns: nil where `rest` ends before the header does.
    mutating func take(from rest: inout UnsafeRawBufferPointer) -> Whole? {
        while true {
            let wanted = needed - count
            guard wanted > 0 else { break }
            let taken = min(wanted, rest.count)
            guard taken > 0 else { return nil }
            unsafe withUnsafeMutableBytes(of: &bytes) { head in
                let room = unsafe UnsafeMutableRawBufferPointer(rebasing: head[count...])
                unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<taken]))
            }
            count += taken
            unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[taken...])
        }
        defer { count = 0 }
        return whole()
    }

    /// How many bytes the header has, as far as its second byte is known.
    private var needed: Int {
        guard count >= 2 else { return 2 }
        return 2 + extendedLength + (isMasked ? 4 : 0)
    }

    private var second: UInt8 { UInt8(truncatingIfNeeded: bytes.0.littleEndian >> 8) }
    private var isMasked: Bool { second & 0x80 != 0 }

    private var extendedLength: Int {
        switch second & 0x7f {
        case 126: 2
        case 127: 8
        default: 0
        }
    }

    private func whole() -> Whole {
        var unmasked = bytes
        let extended = extendedLength
        let (opcode, length, key) = unsafe withUnsafeMutableBytes(of: &unmasked) { head in
            let short = unsafe UInt64(head[1] & 0x7f)
            var length = extended == 0 ? short : 0
            for index in 0..<extended { length = unsafe length << 8 | UInt64(head[2 + index]) }
            let key = unsafe isMasked ? head.loadUnaligned(fromByteOffset: 2 + extended, as: UInt32.self) : nil
            unsafe head[1] &= 0x7f
            return unsafe (head[0] & 0x0f, length, key)
        }
        return Whole(bytes: unmasked, count: 2 + extended, opcode: opcode, length: length, key: key)
    }
}
