import Foundation
import Testing
import TransportKit

@testable import RelayService

/// The limits of the contract: their values, the token bucket step by step, and the slots of addresses.
@Suite struct LimitsTests {
    private struct Contract: Decodable {
        struct Limits: Decodable {
            let maxStreamsPerHandle, maxSockets, maxFrameBytes, heartbeatMs, frameCapacity, framesPerSecond: Int
            let byteCapacity, bytesPerSecond, attemptLimit, attemptWindowMs, attemptSlots, maxBufferedBytes: Int
            let maxSocketsPerAddress, rotateSpreadMs: Int
        }
        struct Bucket: Decodable {
            struct Take: Decodable {
                let count: Int
                let milliseconds: Int
                let isTaken: Bool

                init(from decoder: any Decoder) throws {
                    var values = try decoder.unkeyedContainer()
                    count = try values.decode(Int.self)
                    milliseconds = try values.decode(Int.self)
                    isTaken = try values.decode(Bool.self)
                }
            }

            let capacity, perSecond: Int
            let takes: [Take]
        }

        let limits: Limits
        let tokenBucket: [Bucket]
    }

    private let contract: Contract

    init() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../vectors/relay-contract.json")
        contract = try JSONDecoder().decode(Contract.self, from: Data(contentsOf: file))
    }

    @Test func `The defaults are those of the contract`() {
        let (limits, theirs) = (RelayLimits(), contract.limits)
        #expect(limits.streamsPerRoom == theirs.maxStreamsPerHandle)
        #expect(limits.sockets == theirs.maxSockets)
        #expect(limits.socketsPerAddress == theirs.maxSocketsPerAddress)
        #expect(limits.frameBytes == theirs.maxFrameBytes)
        #expect(limits.frameBurst == theirs.frameCapacity)
        #expect(limits.framesPerSecond == theirs.framesPerSecond)
        #expect(limits.byteBurst == theirs.byteCapacity)
        #expect(limits.bytesPerSecond == theirs.bytesPerSecond)
        #expect(limits.backlogBytes == theirs.maxBufferedBytes)
        #expect(limits.attempts == theirs.attemptLimit)
        #expect(limits.attemptWindow == .milliseconds(theirs.attemptWindowMs))
        #expect(limits.attemptSlots == theirs.attemptSlots)
        #expect(limits.heartbeat == .milliseconds(theirs.heartbeatMs))
        #expect(limits.turnSpread == .milliseconds(theirs.rotateSpreadMs))
    }

    @Test func `The bucket takes and refuses what it does elsewhere`() {
        #expect(!contract.tokenBucket.isEmpty)
        for vector in contract.tokenBucket {
            var bucket = TokenBucket(capacity: vector.capacity, perSecond: vector.perSecond, now: .zero)
            for take in vector.takes {
                let now = Instant.zero + .milliseconds(take.milliseconds)
                #expect(bucket.take(take.count, now: now) == take.isTaken)
            }
        }
    }

    @Test func `A bucket survives every number`() {
        var bucket = TokenBucket(capacity: .max, perSecond: .max, now: .zero)
        #expect(bucket.take(1 << 30, now: Instant(nanoseconds: .max)) == true)
        #expect(bucket.take(.max, now: .zero) == false)
        var empty = TokenBucket(capacity: -1, perSecond: -1, now: .zero)
        #expect(empty.take(1, now: Instant(nanoseconds: .max)) == false)
    }

    @Test func `A slot has thirty attempts a minute, under a new key each minute`() {
        let drawn = Counter()
        var slots = AttemptSlots(RelayLimits()) { Array(repeating: UInt8(truncatingIfNeeded: drawn.next()), count: 32) }
        for index in 0..<30 { #expect(slots.attempt(from: "a", now: .zero + .seconds(index)) == true) }
        #expect(slots.attempt(from: "a", now: .zero + .milliseconds(59_999)) == false)
        let others = (0..<200).map { "address \($0)" }
        let before = others.map { slots.slot(of: $0) }
        #expect(before.allSatisfy { (0..<1024).contains($0) })
        #expect(Set(before).count > 150)
        #expect(slots.attempt(from: "a", now: .zero + .seconds(60)) == true)
        let moved = zip(before, others).filter { $0 != slots.slot(of: $1) }.count
        #expect(moved > 190)
    }
}

/// Counts up.
private final class Counter: @unchecked Sendable {
    // Sendable is sound: one test uses it, from one task.
    private var value = 0

    func next() -> Int {
        value += 1
        return value
    }
}
