internal import Synchronization
internal import TransportIO
internal import TransportKit

/// Something that belongs to a loop, held by whoever runs elsewhere.
///
/// Sendable is sound: the value is only given out on the loop's own thread.
struct LoopBound<Value>: @unchecked Sendable {
    let loop: EventLoop
    private let value: Value

    init(_ value: Value, on loop: EventLoop) {
        self.value = value
        self.loop = loop
    }

    /// The value, for the loop's own thread.
    var onLoop: Value {
        precondition(loop.isCurrent, "this belongs to the loop \(loop.name)")
        return value
    }

    /// The value where the caller runs on the loop, which saves the closures that crossing takes.
    var ifOnLoop: Value? { loop.isCurrent ? value : nil }

    /// Calls `body` with the value on the loop and returns what it returns; without crossing threads where the caller is
    /// on the loop already.
    func run<Result: Sendable>(_ body: @escaping @Sendable (Value) -> Result) async -> Result {
        if loop.isCurrent { return body(value) }
        let answered = Answered()
        let answer = await unsafe withUnsafeContinuation { continuation in
            loop.execute {
                let answer = body(value)
                answered.flag.store(true, ordering: .releasing)
                // Unsafe is sound: the loop runs every job exactly once, even after its end.
                unsafe continuation.resume(returning: answer)
            }
        }
        _ = answered.flag.load(ordering: .acquiring)
        return answer
    }

    /// Calls `body` with the value on the loop, at once or soon.
    func post(_ body: @escaping @Sendable (Value) -> Void) {
        if loop.isCurrent {
            body(value)
        } else {
            loop.execute { body(value) }
        }
    }
}

/// Orders what the loop did before it answered in front of what the asker does then.
///
/// A continuation does that too, but where it is resumed before the asker sleeps the thread sanitizer cannot see it.
private final class Answered: Sendable {
    let flag = Atomic(false)
}

/// Memory for the packets that are being written; one per transport or listener, used by one connection after the other.
@safe final class PacketRoom {
    let bytes: UnsafeMutableRawBufferPointer

    init() {
        unsafe bytes = .allocate(byteCount: QUICConnection.roomBytes, alignment: 16)
    }

    deinit { unsafe bytes.deallocate() }
}
