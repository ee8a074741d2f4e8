internal import TransportKit

/// Bytes in the order they came, kept as the windows they came in.
struct ByteQueue: Sendable {
    // Pieces this small are put together, so that a peer cannot make the book-keeping outweigh the bytes.
    private static let small = 1024

    private var chunks: [Bytes] = []
    private var head = 0

    /// How many bytes wait.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ bytes: Bytes) {
        guard !bytes.isEmpty else { return }
        count += bytes.count
        if bytes.count < Self.small, chunks.count > head, chunks[chunks.count - 1].count < 4 * Self.small {
            chunks[chunks.count - 1].append(contentsOf: bytes)
        } else {
            chunks.append(bytes)
        }
    }

    /// Takes the oldest piece, or the first `limit` bytes of it; nil where nothing waits.
    mutating func takeFirst(upTo limit: Int = .max) -> Bytes? {
        guard head < chunks.count, limit > 0 else { return nil }
        let size = chunks[head].count
        if size > limit {
            count -= limit
            return chunks[head].takeFirst(limit)
        }
        count -= size
        let taken = chunks[head]
        chunks[head] = Bytes()
        advance()
        return taken
    }

    /// Copies the first `length` bytes, or all where there are fewer, to the end of `output`.
    mutating func move(_ length: Int, to output: inout Bytes) {
        var rest = length
        while rest > 0, let part = takeFirst(upTo: rest) {
            output.append(contentsOf: part)
            rest -= part.count
        }
    }

    mutating func removeAll() {
        self = ByteQueue()
    }

    private mutating func advance() {
        head += 1
        if head == chunks.count {
            chunks.removeAll(keepingCapacity: chunks.count <= 64)
            head = 0
        } else if head >= 64, head * 2 > chunks.count {
            chunks.removeFirst(head)
            head = 0
        }
    }
}
