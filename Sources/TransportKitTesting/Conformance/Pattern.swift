internal import Synchronization
internal import TransportKit

/// A number that several tasks move.
final class Counter: Sendable {
    private let number = Mutex(0)

    var value: Int { number.withLock { $0 } }

    func add(_ amount: Int = 1) { number.withLock { $0 += amount } }
}

/// Something that happens once.
final class Flag: Sendable {
    private let raised = Mutex(false)

    var isRaised: Bool { raised.withLock { $0 } }

    func raise() { raised.withLock { $0 = true } }
}

/// Bytes that show where they came from: lost, doubled or swapped ones do not match.
enum Pattern {
    static func bytes(_ count: Int, seed: Int = 0) -> Bytes {
        var generator = SeededGenerator(seed: UInt64(truncatingIfNeeded: seed &* 7919 &+ count))
        return Bytes(unsafeUninitializedCapacity: count) { room in
            var index = 0
            while index + 8 <= count {
                room.storeBytes(of: generator.next(), toByteOffset: index, as: UInt64.self)
                index += 8
            }
            while index < count {
                room[index] = UInt8(truncatingIfNeeded: generator.next())
                index += 1
            }
            return count
        }
    }

    /// A message that starts with a number.
    static func numbered(_ number: Int, count: Int = 8) -> Bytes {
        var bytes = Bytes(capacity: count)
        for shift in (0..<8).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (shift * 8))) }
        if count > 8 { bytes.append(contentsOf: Pattern.bytes(count - 8, seed: number)) }
        return bytes
    }

    /// The number that a message starts with.
    static func number(of bytes: Bytes) -> Int {
        bytes.prefix(8).reduce(0) { $0 << 8 | Int($1) }
    }
}
