/// Takes a stream of bytes apart into messages that are each preceded by their length as a varint (R6).
///
/// No I/O and no clock: feed it what arrived and take what is whole. A message is a window on what was fed where it
/// arrived in one piece, and one copy where it did not.
public struct LengthPrefixedMessages: Sendable {
    /// What ends the parse.
    public struct TooLong: Error, Equatable {
        /// The length that was announced, in bytes.
        public let announced: UInt64
        /// The length that is allowed, in bytes.
        public let limit: Int

        /// Makes the error.
        public init(announced: UInt64, limit: Int) {
            self.announced = announced
            self.limit = limit
        }
    }

    /// The longest message that is let in, in bytes.
    public let limit: Int
    private var buffer = Bytes()
    private var wanted: Int?

    /// Makes a parser that refuses a message longer than `limit` bytes.
    public init(limit: Int) {
        self.limit = limit
    }

    /// How many bytes are held because their message is not whole yet.
    public var bufferedCount: Int { buffer.count }

    /// Whether the bytes so far end between two messages.
    public var isBetweenMessages: Bool { buffer.isEmpty && wanted == nil }

    /// Adds bytes that arrived.
    public mutating func feed(_ bytes: Bytes) {
        if buffer.isEmpty {
            buffer = bytes
        } else {
            buffer.append(contentsOf: bytes)
        }
    }

    /// Takes the next whole message, or nil if more bytes are needed.
    ///
    /// - Throws: ``TooLong`` as soon as a length above the limit is announced, before any of the message is buffered.
    public mutating func next() throws(TooLong) -> Bytes? {
        if wanted == nil {
            guard let (length, size) = Varint.read(from: buffer) else { return nil }
            guard length <= UInt64(limit) else { throw TooLong(announced: length, limit: limit) }
            buffer.removeFirst(size)
            wanted = Int(length)
        }
        guard let length = wanted, buffer.count >= length else { return nil }
        wanted = nil
        return buffer.takeFirst(length)
    }

    /// Writes the length of a message that is about to follow.
    public static func header(for length: Int) -> Bytes {
        var header = Bytes(capacity: 8)
        Varint.append(UInt64(length), to: &header)
        return header
    }
}
