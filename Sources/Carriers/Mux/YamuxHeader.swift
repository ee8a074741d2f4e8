internal import TransportKit

/// The twelve bytes in front of everything that yamux says.
struct YamuxHeader: Equatable {
    /// What a frame is for.
    enum Kind: UInt8 {
        case data = 0
        case windowUpdate = 1
        case ping = 2
        case goAway = 3
    }

    /// What a frame says beside its kind.
    struct Flags: OptionSet, Sendable {
        let rawValue: UInt16

        /// The stream, or the ping, begins.
        static let syn = Flags(rawValue: 1)
        /// The other end's beginning is acknowledged.
        static let ack = Flags(rawValue: 2)
        /// The sender's direction of the stream ends.
        static let fin = Flags(rawValue: 4)
        /// The stream is gone in both directions.
        static let rst = Flags(rawValue: 8)
    }

    static let size = 12

    var kind: Kind
    var flags: Flags = []
    /// 0 for what concerns the whole session.
    var stream: UInt32
    /// The bytes of data that follow; else the window's growth, the ping's value, or the code of the going away.
    var length: UInt32

    /// Writes the header at the end of `bytes`.
    func append(to bytes: inout Bytes) {
        bytes.append(unsafeUninitializedCapacity: Self.size) { room in
            room[0] = 0
            room[1] = kind.rawValue
            room.storeBytes(of: flags.rawValue.bigEndian, toByteOffset: 2, as: UInt16.self)
            room.storeBytes(of: stream.bigEndian, toByteOffset: 4, as: UInt32.self)
            room.storeBytes(of: length.bigEndian, toByteOffset: 8, as: UInt32.self)
            return Self.size
        }
    }

    /// Reads a header from the first twelve bytes of `bytes`.
    static func read(from bytes: Bytes) throws(YamuxError) -> YamuxHeader {
        try bytes.withUnsafeBytes { (raw) throws(YamuxError) in
            guard raw[0] == 0 else { throw .version(raw[0]) }
            guard let kind = Kind(rawValue: raw[1]) else { throw .kind(raw[1]) }
            return YamuxHeader(
                kind: kind,
                flags: Flags(rawValue: UInt16(bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self))),
                stream: UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)),
                length: UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
        }
    }
}
