package import TransportKit

/// What was written to a pipe and has not gone out, in pieces that are not moved while they wait: a fast flow over a slow
/// path would otherwise copy its bytes once more. An empty one holds no memory.
package struct OutputQueue {
    /// A piece of this size takes no more.
    private static let pieceBytes = 64 << 10

    private let room: LoopRoom
    /// Pieces older than `last`; none while the path keeps up.
    private var full: [Bytes] = []
    private var last = Bytes()

    /// How many bytes wait.
    package private(set) var count = 0

    /// Makes an empty queue that borrows its buffers from `room`.
    package init(room: LoopRoom) {
        self.room = room
    }

    /// Whether nothing waits.
    package var isEmpty: Bool { count == 0 }

    /// Lets `body` add bytes to the end.
    package mutating func write(_ body: (inout Bytes) -> Void) {
        if last.count >= Self.pieceBytes {
            full.append(last)
            last = Bytes()
        }
        if last.isEmpty, last.tailroom == 0 { last = room.takeSpare() }
        let before = last.count
        body(&last)
        count += last.count - before
    }

    /// Hands `body` the oldest piece, of which it takes what it can.
    package mutating func take<Result, Failure: Error>(
        _ body: (inout Bytes) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard !full.isEmpty else {
            defer { if last.isEmpty { empty() } }
            return try Self.take(from: &last, &count, body)
        }
        defer { if full[0].isEmpty { room.putSpare(full.removeFirst()) } }
        return try Self.take(from: &full[0], &count, body)
    }

    private static func take<Result, Failure: Error>(
        from piece: inout Bytes, _ count: inout Int, _ body: (inout Bytes) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let before = piece.count
        defer { count -= before - piece.count }
        return try body(&piece)
    }

    /// Lends the buffer to whoever writes next on this loop.
    private mutating func empty() {
        full = []
        room.putSpare(last)
        last = Bytes()
    }

    /// Drops everything.
    package mutating func removeAll() {
        self = OutputQueue(room: room)
    }
}
