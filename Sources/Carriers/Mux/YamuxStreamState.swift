internal import TransportKit

/// What one end knows of one stream.
struct YamuxStreamState: Sendable {
    /// Every window starts with this (yamux specification, "Flow control").
    static let initialWindow = 262_144

    // MARK: Receiving

    /// What has arrived and was not read.
    var received = ByteQueue()
    /// How many more bytes the peer may send.
    var receiveWindow = Self.initialWindow
    /// The size of the window: what the peer may send, what waits here, and what was read but not yet given back.
    var window = Self.initialWindow
    /// What was read and not yet given back to the peer.
    var unreturned = 0
    var hasReceivedEnd = false

    // MARK: Sending

    /// What was written and has not gone out.
    var queue = ByteQueue()
    /// How many more bytes the peer takes.
    var sendWindow = Self.initialWindow
    var wantsEnd = false
    var hasSentEnd = false

    // MARK: Life

    /// Whether one of the ends reset it.
    var wasReset = false
    /// What the next window update must say: the stream's beginning, or that of the peer's acknowledged.
    var flagsDue: YamuxHeader.Flags = []
    /// Whether the peer knows of the stream. Nothing but its beginning may go out before.
    var isEstablished = true
    /// Whether it counts against the limit on streams.
    var isOpen = true
    /// Whether the application has it, or will be handed it.
    var isHeld = true
    /// Whether the application has dropped it and what still arrives is thrown away.
    var isAbandoned = false
    /// Whether it waits for its turn to send a window update.
    var isUpdateDue = false
    /// Whether it waits for its turn to send data.
    var isReady = false

    /// Whether there is something to send that the peer takes.
    var canSend: Bool {
        isEstablished && !wasReset && !hasSentEnd && (queue.isEmpty ? wantsEnd : sendWindow > 0)
    }

    /// Whether neither end will say anything more on it.
    var isOver: Bool { wasReset || (hasReceivedEnd && hasSentEnd) }
}
