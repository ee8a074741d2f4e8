internal import CNgtcp2
internal import TransportKit

/// The bytes of one stream from the application's write until the peer has acknowledged them.
///
/// Big payloads are kept as the windows they came in and never copied. Small ones are put together, so that many of them
/// fill one packet from few pieces. The library borrows the memory of everything that is sent and not acknowledged.
struct OutboundQueue {
    private var chunks: [Bytes] = []
    /// How many chunks at the front of `chunks` are done with.
    private var first = 0
    /// The offset in the stream at which `chunks[first]` begins.
    private var firstOffset: UInt64 = 0
    /// The chunk that is sent next, and how much of it is sent.
    private var next = 0
    private var nextSent = 0
    /// Whether the last chunk is this queue's own, so that more may be put behind it.
    private var lastIsOwn = false

    /// The offset in the stream of what is sent next.
    private(set) var sentOffset: UInt64 = 0
    /// The offset in the stream of the end of what was written.
    private(set) var endOffset: UInt64 = 0
    /// The offset in the stream up to which the peer has acknowledged.
    private(set) var acknowledgedOffset: UInt64 = 0
    /// Whether the end of the stream has been asked for, and sent.
    var isFinishing = false
    private(set) var isFinishSent = false
    /// Where a message began that was written while nothing waited.
    private var messageStart = UInt64.max

    /// Up to here a payload is copied. With larger ones left as they are, a packet holds pieces of three chunks at most.
    private static let smallest = 4096
    private static let ownCapacity = 16_384
    /// The pieces in one STREAM frame. ngtcp2 0.12 keeps frames with more in memory of another kind, of which it loses
    /// track when part of such a frame is acknowledged and the rest is sent again.
    static let pieces = 3

    /// How many bytes wait to be sent for the first time.
    var unsent: Int { Int(endOffset - sentOffset) }
    /// Whether there is something to send, if only the end of the stream.
    var hasWork: Bool { endOffset > sentOffset || (isFinishing && !isFinishSent) }
    /// Whether the peer has acknowledged every byte.
    var isAcknowledged: Bool { acknowledgedOffset == endOffset }

    /// Puts bytes at the end.
    mutating func append(_ bytes: Bytes) {
        guard !bytes.isEmpty else { return }
        endOffset += UInt64(bytes.count)
        guard bytes.count <= Self.smallest else {
            chunks.append(bytes)
            lastIsOwn = false
            return
        }
        makeOwnRoom(for: bytes.count)
        chunks[chunks.count - 1].append(contentsOf: bytes)
    }

    /// Sees to it that the last chunk is this queue's own and has room.
    private mutating func makeOwnRoom(for count: Int) {
        // In place only where the storage does not move: the library may borrow its front.
        if lastIsOwn, first < chunks.count, chunks[chunks.count - 1].tailroom >= count { return }
        // A lone small message, as in a ping-pong, gets no more than it needs.
        chunks.append(Bytes(capacity: first == chunks.count ? max(count, 256) : Self.ownCapacity))
        lastIsOwn = true
    }

    /// Puts a message behind its length (R6).
    mutating func append(message: Bytes) {
        if unsent == 0 { messageStart = endOffset }
        let length = UInt64(message.count)
        // With room for a small message too, so that both lie in one chunk.
        makeOwnRoom(for: 8 + (message.count <= Self.smallest ? message.count : 0))
        Varint.append(length, to: &chunks[chunks.count - 1])
        endOffset += UInt64(Varint.length(of: length))
        append(message)
    }

    /// What waits, where it begins with a message and none of it is sent: it can go elsewhere instead.
    var unsentMessages: [Bytes] {
        guard unsent > 0, sentOffset == messageStart else { return [] }
        return [chunks[next].dropFirst(nextSent)] + chunks[(next + 1)...]
    }

    /// Points `vectors` at what is to be sent next.
    ///
    /// - Returns: how many vectors were filled, their bytes, and whether they reach the end of what was written.
    func fill(_ vectors: UnsafeMutableBufferPointer<ngtcp2_vec>) -> (count: Int, bytes: Int, isAll: Bool) {
        var count = 0
        var total = 0
        var index = next
        var skip = nextSent
        while index < chunks.count, count < vectors.count {
            // The pointer outlives the call: the storage never moves while `chunks` holds the window, nobody writes to
            // bytes that are shown, and the window stays in `chunks` until the peer has acknowledged it.
            unsafe chunks[index].withUnsafeBytes { bytes in
                let rest = unsafe UnsafeMutableRawBufferPointer(
                    mutating: UnsafeRawBufferPointer(rebasing: bytes[skip...]))
                guard let base = rest.baseAddress, rest.count > 0 else { return }
                unsafe vectors[count] = ngtcp2_vec(
                    base: base.assumingMemoryBound(to: UInt8.self), len: rest.count)
                total += rest.count
                count += 1
            }
            index += 1
            skip = 0
        }
        return (count, total, index >= chunks.count)
    }

    /// A copy of what ``fill(_:)`` would point at, for tests.
    var nextBytes: Bytes {
        var bytes = Bytes()
        unsafe withUnsafeTemporaryAllocation(of: ngtcp2_vec.self, capacity: Self.pieces) { vectors in
            for index in unsafe 0..<fill(vectors).count {
                unsafe bytes.append(
                    contentsOf: UnsafeRawBufferPointer(start: vectors[index].base, count: vectors[index].len))
            }
        }
        return bytes
    }

    /// The library has taken `count` bytes, and the end of the stream too if `withEnd`.
    mutating func sent(_ count: Int, withEnd: Bool) {
        sentOffset += UInt64(count)
        var left = count
        while left > 0 {
            let rest = chunks[next].count - nextSent
            if left < rest {
                nextSent += left
                break
            }
            left -= rest
            next += 1
            nextSent = 0
        }
        if withEnd { isFinishSent = true }
        // More may be put behind the last chunk once it is sent, so the place to go on is inside it.
        if next == chunks.count, lastIsOwn, next > first {
            next -= 1
            nextSent = chunks[next].count
        }
    }

    /// The peer has acknowledged everything up to `offset`.
    mutating func acknowledged(upTo offset: UInt64) {
        acknowledgedOffset = max(acknowledgedOffset, min(offset, sentOffset))
        while first < chunks.count {
            let end = firstOffset + UInt64(chunks[first].count)
            guard end <= acknowledgedOffset else { break }
            firstOffset = end
            chunks[first] = Bytes()
            first += 1
        }
        if next < first {
            next = first
            nextSent = 0
        }
        if first == chunks.count {
            // An idle stream holds no buffer (R190).
            chunks.removeAll(keepingCapacity: chunks.capacity <= 16)
            first = 0
            next = 0
            nextSent = 0
            lastIsOwn = false
        } else if first >= 64, first * 2 >= chunks.count {
            chunks.removeFirst(first)
            next -= first
            first = 0
        }
    }
}
