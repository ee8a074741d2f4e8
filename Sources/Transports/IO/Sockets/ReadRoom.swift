internal import TransportKit

/// How much room to make for the next read of a connection: large reads are cheap per byte, but room for one that stays
/// mostly empty is wasted on whoever keeps the bytes.
struct ReadRoom {
    private static let least = 4096
    private static let most = 256 << 10

    private(set) var next = least

    /// How much to make of `limit`.
    func size(upTo limit: Int) -> Int { min(limit, next) }

    /// Learns from a read that found `count` bytes for `room`; returns whether they should move to room of their own size.
    mutating func learn(count: Int, room: Int) -> Bool {
        if count == next {
            next = min(next * 4, Self.most)
        } else if count < next / 4, room == next {
            next = max(next / 2, Self.least)
        }
        return room > Self.least && count < room / 4
    }
}
