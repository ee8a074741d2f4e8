import Testing
import TransportKit
import WebSocketTransport

/// What a pipe gathers while its path is slow.
@Suite struct OutputQueueTests {
    @Test(arguments: [1, 2, 3] as [UInt64]) func `What was written is taken in order, however it is cut`(seed: UInt64) {
        var random = Numbers(state: seed)
        let room = LoopRoom()
        var queue = OutputQueue(room: room)
        var (written, taken) = (0, 0)
        for _ in 0..<400 {
            if Int.random(in: 0..<3, using: &random) > 0 {
                let length = Int.random(in: 0...20_000, using: &random)
                queue.write {
                    $0.append(contentsOf: (written..<written + length).map { UInt8(truncatingIfNeeded: $0) })
                }
                written += length
            } else if !queue.isEmpty {
                let part = queue.take { piece in piece.takeFirst(Int.random(in: 0...piece.count, using: &random)) }
                let expected = (taken..<taken + part.count).map { UInt8(truncatingIfNeeded: $0) }
                #expect(part == Bytes(expected))
                taken += part.count
            }
            #expect(queue.count == written - taken)
        }
    }

    @Test func `A piece that waits is not moved by what comes after it`() {
        var queue = OutputQueue(room: LoopRoom())
        func place() -> UnsafeRawPointer? { queue.take { piece in piece.withUnsafeBytes { $0.baseAddress } } }
        queue.write { $0.append(contentsOf: Bytes(repeating: 1, count: 100_000)) }
        let first = place()
        for _ in 0..<10 { queue.write { $0.append(contentsOf: Bytes(repeating: 2, count: 100_000)) } }
        #expect(place() == first)
        #expect(queue.count == 1_100_000)
    }
}

/// Repeatable random numbers (SplitMix64).
private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
