package import TransportKit

/// Cuts a stream of bytes into the payloads of messages. No I/O.
package struct MessageSplitter {
    /// How to cut.
    package enum Mode: Sendable, Hashable {
        /// Each line is a message, without its newline.
        case lines
        /// Whatever is there is a message, cut where it is longer than a message may be.
        case raw
    }

    /// A line that does not fit a message.
    package struct TooLong: Error, Sendable, Hashable, CustomStringConvertible {
        package var line: Int
        package var limit: Int

        package var description: String {
            "line \(line) has more than \(limit) bytes, the most a message may have; --raw has no lines"
        }
    }

    private let mode: Mode
    private let limit: Int
    private var partial = Bytes()
    private var line = 1

    /// Makes a splitter for messages of at most `limit` bytes.
    package init(_ mode: Mode, limit: Int) {
        self.mode = mode
        self.limit = limit
    }

    /// The payloads that are whole with these bytes.
    package mutating func feed(_ bytes: Bytes) throws(TooLong) -> [Bytes] {
        switch mode {
        case .raw: return pieces(of: bytes)
        case .lines: return try lines(of: bytes)
        }
    }

    /// The last payload, where the input does not end with a newline.
    package mutating func finish() -> Bytes? {
        defer { partial = Bytes() }
        return partial.isEmpty ? nil : partial
    }

    private func pieces(of bytes: Bytes) -> [Bytes] {
        // Small enough that the first one travels while the next is read.
        let size = min(limit, 64 << 10)
        return stride(from: 0, to: bytes.count, by: size).map { bytes[$0..<min($0 + size, bytes.count)] }
    }

    private mutating func lines(of bytes: Bytes) throws(TooLong) -> [Bytes] {
        var payloads: [Bytes] = []
        var start = 0
        for end in newlines(of: bytes) {
            let piece = bytes[start..<end]
            start = end + 1
            if partial.isEmpty {
                partial = piece
            } else {
                partial.append(contentsOf: piece)
            }
            try check()
            payloads.append(partial)
            partial = Bytes()
            line += 1
        }
        if start < bytes.count { partial.append(contentsOf: bytes[start..<bytes.count]) }
        try check()
        return payloads
    }

    private func newlines(of bytes: Bytes) -> [Int] {
        unsafe bytes.withUnsafeBytes { room in room.indices.filter { unsafe room[$0] == 0x0a } }
    }

    private func check() throws(TooLong) {
        guard partial.count <= limit else { throw TooLong(line: line, limit: limit) }
    }
}
