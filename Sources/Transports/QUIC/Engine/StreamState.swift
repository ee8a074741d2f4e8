internal import TransportKit

/// What one end knows of a stream. Confined to the connection's loop.
///
/// The connection holds it from the opening until the library has forgotten the stream, the application's handle as long
/// as the application likes.
///
/// Sendable is sound: it crosses threads only inside an inbox or a handle, and only the loop looks inside.
final class StreamState: @unchecked Sendable {
    /// What travels on it.
    enum Content {
        /// Framed items: the control stream and unidirectional streams of the peer.
        case framed(FramedInput, Delivery)
        /// Raw bytes: an application stream.
        case raw(InboundBytes)
        /// Nothing comes in: this end's own unidirectional stream.
        case none
    }

    let id: Int64
    /// Whether this end opened it.
    let isLocal: Bool
    var content: Content
    var outbound = OutboundQueue()

    /// Whether the flow control of the peer, or the connection, holds it up.
    var isBlocked = false
    /// Whether it stands in the connection's list of those with something to send.
    var isQueued = false
    /// The code with which either end aborted what this end reads, and what it writes.
    var resetCode: UInt64?
    var stopCode: UInt64?
    /// Whether nothing more can be sent: reset, or stopped by the peer.
    var isSendingOver = false
    /// Whether this end still takes bytes in.
    var isReceivingOver = false
    /// Whether the library has forgotten the stream.
    var isClosed = false
    /// Whether the application has taken the stream off the queue of accepted ones, or opened it itself.
    var isTaken: Bool
    /// Whether the application has let go of it.
    var isReleased = false
    /// Whether it stands in the sink's list of those where something happened.
    var isTouched = false
    /// Whether the bytes that say what kind of stream it is have been given back.
    var hasCountedKind = false
    /// Whether its place in the limit on streams has been given back.
    var isCounted: Bool

    var isReading = false
    var isWriting = false
    let readable = Signal()
    let writable = Signal()

    init(id: Int64, isLocal: Bool, content: Content) {
        self.id = id
        self.isLocal = isLocal
        self.content = content
        isTaken = isLocal
        isCounted = !isLocal
    }

    var isBidirectional: Bool { id & 2 == 0 }
    var isControl: Bool { id == 0 }

    var inbound: InboundBytes {
        get {
            guard case .raw(let bytes) = content else { return InboundBytes() }
            return bytes
        }
        _modify {
            guard case .raw(var bytes) = content else {
                var nothing = InboundBytes()
                yield &nothing
                return
            }
            // The content must not hold a second reference while the bytes are changed, or they would be copied.
            content = .none
            defer { content = .raw(bytes) }
            yield &bytes
        }
    }

    /// Wakes whoever waits for the stream.
    func wake() {
        readable.signal()
        writable.signal()
    }
}
