internal import CNgtcp2

/// A connection id, as a key to look connections up by.
struct ConnectionID: Hashable, Sendable {
    /// How long the ids are that this end hands out. The first byte is kept for the number of the loop.
    static let length = 8

    private var first: UInt64 = 0
    private var second: UInt64 = 0
    private var third: UInt32 = 0
    private let count: UInt8

    /// Makes an id of at most 20 bytes; the rest is cut.
    init(_ bytes: UnsafeRawBufferPointer) {
        let length = min(bytes.count, 20)
        count = UInt8(length)
        for index in 0..<length {
            let byte = unsafe bytes[index]
            switch index {
            case 0..<8: first = first << 8 | UInt64(byte)
            case 8..<16: second = second << 8 | UInt64(byte)
            default: third = third << 8 | UInt32(byte)
            }
        }
    }

    /// The id of this end's that a packet with a short header is sent to.
    init?(ofShort packet: UnsafeRawBufferPointer) {
        guard packet.count > Self.length, unsafe packet[0] & 0x80 == 0 else { return nil }
        self = unsafe ConnectionID(UnsafeRawBufferPointer(rebasing: packet[1...Self.length]))
    }

    /// The form that the library takes.
    var library: tk_quic_id {
        var id = tk_quic_id()
        id.count = count
        unsafe withUnsafeMutableBytes(of: &id.bytes) { room in
            for index in 0..<Int(count) {
                // Each part holds its bytes at its low end, the last of them lowest.
                let (part, start, width): (UInt64, Int, Int) =
                    switch index {
                    case 0..<8: (first, 0, min(Int(count), 8))
                    case 8..<16: (second, 8, min(Int(count) - 8, 8))
                    default: (UInt64(third), 16, Int(count) - 16)
                    }
                unsafe room[index] = UInt8(truncatingIfNeeded: part >> UInt64((width - 1 - (index - start)) * 8))
            }
        }
        return id
    }

    /// Makes an id from the library's.
    init(_ id: tk_quic_id) {
        let count = min(Int(id.count), 20)
        self = unsafe withUnsafeBytes(of: id.bytes) {
            unsafe ConnectionID(UnsafeRawBufferPointer(rebasing: $0[..<count]))
        }
    }
}
