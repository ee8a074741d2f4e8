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
        return await unsafe withUnsafeContinuation { continuation in
            // Unsafe is sound: the loop runs every job exactly once, even after its end.
            loop.execute { unsafe continuation.resume(returning: body(value)) }
        }
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

/// Memory for the packets that are being written; one per transport or listener, used by one connection after the other.
@safe final class PacketRoom {
    let bytes: UnsafeMutableRawBufferPointer

    init() {
        unsafe bytes = .allocate(byteCount: QUICConnection.roomBytes, alignment: 16)
    }

    deinit { unsafe bytes.deallocate() }
}
