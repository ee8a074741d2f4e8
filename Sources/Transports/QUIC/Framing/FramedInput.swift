package import TransportKit

/// Takes apart the streams that have a form: the control stream and the unidirectional ones (R5–R7).
///
/// No I/O. A message that lies whole in what is fed becomes a window on one copy of it, one that does not is gathered in
/// storage of its own: every byte is copied once.
package struct FramedInput {
    /// What comes next on the stream.
    private enum Stage {
        /// The varint that says what kind of unidirectional stream it is.
        case kind
        /// The target, which only the dialer sends.
        case target
        case messages
        /// Nothing more is looked at.
        case ended
    }

    /// What was found, with the bytes of the stream it took, its length included.
    package struct Item: Equatable {
        package let payload: Bytes
        package let cost: Int
        package let isTarget: Bool
    }

    /// Why the rest cannot be read.
    package enum Failure: Error, Equatable {
        case tooLong(announced: UInt64, limit: Int)
        case badTarget(announced: UInt64)
        case unknownKind(UInt64)
    }

    /// The kind of a unidirectional stream that carries bulk messages (R7).
    static let bulkKind: UInt64 = 0

    private let limit: Int
    private var stage: Stage
    /// The bytes of a varint that is not whole yet, and how many.
    private var pending: (value: UInt64, have: Int, want: Int) = (0, 0, 0)
    /// A message that is not whole yet, with the bytes of its length.
    private var partial: (bytes: Bytes, length: Int, header: Int)?
    /// The bytes of the stream that came before the first item and belong to none.
    private(set) var looseBytes = 0

    private init(_ stage: Stage, limit: Int) {
        self.stage = stage
        self.limit = limit
    }

    /// For the control stream of an end whose peer sends the target first.
    package static func target(thenMessagesUpTo limit: Int) -> FramedInput { FramedInput(.target, limit: limit) }
    /// For the control stream of the dialer, on which messages come at once.
    package static func messages(upTo limit: Int) -> FramedInput { FramedInput(.messages, limit: limit) }
    /// For a unidirectional stream of the peer.
    package static func unidirectional(messagesUpTo limit: Int) -> FramedInput { FramedInput(.kind, limit: limit) }

    /// Whether what came so far ends between two items.
    package var isBetweenItems: Bool { partial == nil && pending.want == 0 }

    /// Takes bytes that arrived and gives out what is whole.
    package mutating func feed(_ bytes: UnsafeRawBufferPointer, _ emit: (Item) -> Void) throws(Failure) {
        var offset = 0
        // One copy of what was fed, made when the first message lies whole in it.
        var shared: (bytes: Bytes, base: Int)?
        while offset < bytes.count {
            if unsafe continuePartial(bytes, &offset, emit) { continue }
            guard let (value, size) = unsafe takeVarint(bytes, &offset) else { return }
            switch stage {
            case .ended:
                return
            case .kind:
                guard value == Self.bulkKind else {
                    stage = .ended
                    throw .unknownKind(value)
                }
                looseBytes += size
                stage = .messages
                continue
            case .target:
                guard value > 0, value <= UInt64(Target.limit) else {
                    stage = .ended
                    throw .badTarget(announced: value)
                }
            case .messages:
                guard value <= UInt64(limit) else {
                    stage = .ended
                    throw .tooLong(announced: value, limit: limit)
                }
            }
            let length = Int(value)
            if length <= bytes.count - offset {
                if shared == nil {
                    let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[offset...])
                    shared = unsafe (Bytes(copying: rest), offset)
                }
                if let shared {
                    let start = offset - shared.base
                    finish(shared.bytes[start..<start + length], size, emit)
                }
                offset += length
            } else {
                // The limit bounds it, and memory that nobody writes to costs nothing.
                partial = (Bytes(capacity: min(length, 1 << 20)), length, size)
            }
        }
    }

    private mutating func finish(_ payload: Bytes, _ header: Int, _ emit: (Item) -> Void) {
        let isTarget = stage == .target
        if isTarget { stage = .messages }
        emit(Item(payload: payload, cost: payload.count + header, isTarget: isTarget))
    }

    /// Adds to the message that is not whole yet; false if there is none.
    private mutating func continuePartial(
        _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, _ emit: (Item) -> Void
    ) -> Bool {
        guard let (_, length, header) = partial else { return false }
        let count = min(length - (partial?.bytes.count ?? 0), bytes.count - offset)
        unsafe partial?.bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
        offset += count
        if let whole = partial?.bytes, whole.count == length {
            partial = nil
            finish(whole, header, emit)
        }
        return true
    }

    /// Reads a varint that may lie in several pieces.
    private mutating func takeVarint(
        _ bytes: UnsafeRawBufferPointer, _ offset: inout Int
    ) -> (value: UInt64, size: Int)? {
        while offset < bytes.count {
            let byte = unsafe bytes[offset]
            offset += 1
            if pending.want == 0 {
                pending = (UInt64(byte & 0x3f), 1, 1 << Int(byte >> 6))
            } else {
                pending.value = pending.value << 8 | UInt64(byte)
                pending.have += 1
            }
            if pending.have == pending.want {
                defer { pending = (0, 0, 0) }
                return (pending.value, pending.want)
            }
        }
        return nil
    }
}
