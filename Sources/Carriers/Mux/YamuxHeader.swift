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

/// Why an end goes away.
enum YamuxGoAway: UInt32 {
    case normal = 0
    case protocolError = 1
    case internalError = 2
}

/// How a peer broke the rules of yamux. Every case ends the session with 1002.
enum YamuxError: Error, Equatable {
    case version(UInt8)
    case kind(UInt8)
    case streamOfSession(UInt32)
    case foreignNumber(UInt32)
    case reusedNumber(UInt32)
    case neverOpened(UInt32)
    case lanesMissing(UInt32)
    case overWindow(stream: UInt32, announced: UInt32, window: Int)
    case windowOverflow(UInt32)
    case dataAfterEnd(UInt32)
    case laneEnded(UInt32)
    case wentAway(UInt32)
    case flood
}

extension YamuxError: CustomStringConvertible {
    var description: String {
        switch self {
        case .version(let version): "a frame of yamux version \(version); only 0 is known"
        case .kind(let kind): "a yamux frame of the unknown type \(kind)"
        case .streamOfSession(let id): "a ping or go-away on stream \(id); they belong to stream 0"
        case .foreignNumber(let id): "the peer opened stream \(id), a number that is not its own to give"
        case .reusedNumber(let id): "the peer opened stream \(id) after a higher number"
        case .neverOpened(let id): "a frame on stream \(id), which nobody opened"
        case .lanesMissing(let id): "the peer opened stream \(id) before the streams 1 and 3 of the messages"
        case .overWindow(let id, let announced, let window):
            "\(announced) bytes announced on stream \(id), whose window is \(window)"
        case .windowOverflow(let id): "the window of stream \(id) was raised past 32 bits"
        case .dataAfterEnd(let id): "data on stream \(id) after its end"
        case .laneEnded(let id): "stream \(id), which carries messages, was ended"
        case .wentAway(let code): "the peer went away with code \(code)"
        case .flood: "the peer asks for more answers than it takes"
        }
    }
}
