internal import TransportKit

/// The sending half of a lane: messages of one batch, with their lengths, as bytes for a lane.
struct LaneBatch {
    // Longer payloads are sent from where they are; shorter ones are cheaper to copy than to keep.
    private static let copyLimit = 1024

    private(set) var pieces: [Bytes] = []
    private(set) var count = 0
    private var joined = Bytes()

    mutating func append(_ payload: Bytes) {
        Varint.append(UInt64(payload.count), to: &joined)
        count += Varint.length(of: UInt64(payload.count)) + payload.count
        if payload.count <= Self.copyLimit {
            joined.append(contentsOf: payload)
        } else {
            flush()
            pieces.append(payload)
        }
    }

    /// The pieces, in order.
    mutating func finish() -> [Bytes] {
        flush()
        return pieces
    }

    private mutating func flush() {
        guard !joined.isEmpty else { return }
        pieces.append(joined)
        joined = Bytes()
    }
}
