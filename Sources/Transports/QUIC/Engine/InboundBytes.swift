internal import TransportKit

/// The bytes of one application stream from the packet until the application has read them.
///
/// They are copied once, out of the packet, into pieces that grow with the load; the application gets windows on them.
struct InboundBytes {
    private var chunks: [Bytes] = []
    private var first = 0
    /// Whether the application holds a window on the last chunk, so that nothing may be put behind it without a copy.
    private var lastIsShared = false

    /// How many bytes wait to be read.
    private(set) var count = 0
    /// Whether the peer's last byte has come.
    var isEnded = false

    private static let largestChunk = 1 << 16

    /// Whether nothing waits.
    var isEmpty: Bool { count == 0 }

    /// Copies bytes that arrived.
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard unsafe !bytes.isEmpty else { return }
        let last = chunks.count - 1
        if first <= last, !lastIsShared, chunks[last].tailroom >= bytes.count {
            unsafe chunks[last].append(contentsOf: bytes)
        } else {
            // The fuller it is the longer nobody has read, and the larger the pieces that pay.
            let capacity = max(bytes.count, min(max(count * 2, 0), Self.largestChunk))
            var chunk = Bytes(capacity: capacity)
            unsafe chunk.append(contentsOf: bytes)
            chunks.append(chunk)
            lastIsShared = false
        }
        count += bytes.count
    }

    /// Takes at most `limit` bytes off the front.
    mutating func take(upTo limit: Int) -> Bytes {
        guard first < chunks.count else { return Bytes() }
        let taken: Bytes
        if chunks[first].count <= limit {
            taken = chunks[first]
            chunks[first] = Bytes()
            first += 1
        } else {
            taken = chunks[first].takeFirst(limit)
            if first == chunks.count - 1 { lastIsShared = true }
        }
        if first == chunks.count {
            chunks = []
            first = 0
            lastIsShared = false
        } else if first >= 64, first * 2 >= chunks.count {
            chunks.removeFirst(first)
            first = 0
        }
        count -= taken.count
        return taken
    }

    /// Drops everything.
    ///
    /// - Returns: how many bytes were dropped.
    mutating func removeAll() -> Int {
        defer { count = 0 }
        chunks = []
        first = 0
        lastIsShared = false
        return count
    }
}
