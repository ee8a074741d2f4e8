import Testing
import TransportKit
import TransportKitTesting

@testable import QUICTransport

@Suite struct BufferTests {
    @Test func `What is written in pieces is sent, acknowledged and let go in order`() {
        for seed in UInt64(1)...40 {
            var random = SeededGenerator(seed: seed)
            var queue = OutboundQueue()
            var written: [UInt8] = []
            var sent: [UInt8] = []
            var acknowledged = 0
            var isCountRight = true
            for step in 0..<300 {
                switch Int.random(in: 0..<4, using: &random) {
                case 0, 1:
                    let count = [1, 40, 300, 1024, 1025, 9000].randomElement(using: &random) ?? 1
                    let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: count)
                    written += bytes
                    queue.append(Bytes(bytes))
                case 2:
                    sent += take(Int.random(in: 0...3000, using: &random), from: &queue)
                default:
                    acknowledged = Int.random(in: acknowledged...sent.count, using: &random)
                    queue.acknowledged(upTo: UInt64(acknowledged))
                }
                isCountRight = isCountRight && queue.unsent == written.count - sent.count
            }
            while queue.hasWork { sent += take(1400, from: &queue) }
            #expect(isCountRight && sent == written, "seed \(seed)")
            queue.acknowledged(upTo: UInt64(sent.count))
            #expect(queue.isAcknowledged)
        }
    }

    // R7: a refused bulk stream costs the message under way, and none that waits behind it.
    @Test func `Messages of which nothing is sent can go elsewhere, one that is under way cannot`() {
        var queue = OutboundQueue()
        queue.append(message: Bytes("first"))
        #expect(take(6, from: &queue) == [5] + Array("first".utf8))
        #expect(queue.unsentMessages.isEmpty)
        queue.append(message: Bytes("second"))
        queue.append(message: Bytes(repeating: 9, count: 2000))
        #expect(queue.unsentMessages.reduce(0) { $0 + $1.count } == queue.unsent)
        #expect(queue.unsentMessages.first?.prefix(7) == Bytes([6] + Array("second".utf8)))
        _ = take(1, from: &queue)
        #expect(queue.unsentMessages.isEmpty)
    }

    /// What the library does: looks at what is next and takes some of it.
    private func take(_ count: Int, from queue: inout OutboundQueue) -> [UInt8] {
        let taken = Array(queue.nextBytes.prefix(count))
        queue.sent(taken.count, withEnd: false)
        return taken
    }

    @Test func `What arrives is read in order, in any portions`() {
        for seed in UInt64(1)...40 {
            var random = SeededGenerator(seed: seed)
            var inbound = InboundBytes()
            var arrived: [UInt8] = []
            var read: [UInt8] = []
            var isCountRight = true
            // Held, as an application may: the windows must not change afterwards.
            var held: [(Bytes, [UInt8])] = []
            for step in 0..<300 {
                if Bool.random(using: &random) {
                    let bytes = [UInt8](
                        repeating: UInt8(truncatingIfNeeded: step), count: Int.random(in: 0...1500, using: &random))
                    arrived += bytes
                    bytes.withUnsafeBytes { inbound.append($0) }
                } else {
                    let part = inbound.take(upTo: Int.random(in: 1...4000, using: &random))
                    read += Array(part)
                    held.append((part, Array(part)))
                }
                isCountRight = isCountRight && inbound.count == arrived.count - read.count
            }
            while !inbound.isEmpty { read += Array(inbound.take(upTo: 777)) }
            #expect(isCountRight && read == arrived, "seed \(seed)")
            #expect(held.allSatisfy { Array($0.0) == $0.1 }, "seed \(seed)")
        }
    }

    @Test func `An answer budget is refilled every second`() {
        var budget = AnswerBudget()
        var taken = 0
        for _ in 0..<1000 where budget.take(.zero) { taken += 1 }
        #expect(taken == 200)
        let early = budget.take(.zero + .milliseconds(999))
        let later = budget.take(.zero + .seconds(1))
        #expect(!early && later)
    }
}
