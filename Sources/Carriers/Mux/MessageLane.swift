internal import TransportKit

/// The receiving half of a lane: takes the messages out of the bytes of a stream, no sooner than somebody wants them.
///
/// At most one whole message waits here; the rest stays in the stream's window, so that the window bounds the memory.
struct MessageLane {
    let stream: UInt32
    private let delivery: Delivery
    private var parser: LengthPrefixedMessages
    private var whole: Bytes?

    init(stream: UInt32, delivery: Delivery, limit: Int) {
        self.stream = stream
        self.delivery = delivery
        parser = LengthPrefixedMessages(limit: limit)
    }

    /// Whether a whole message waits. The bytes of one that is not whole are taken in, because it may be longer than
    /// the window.
    mutating func hasMessage(
        in session: inout YamuxSession
    ) throws(LengthPrefixedMessages.TooLong) -> Bool {
        while whole == nil {
            whole = try parser.next()
            if whole != nil { break }
            guard let bytes = session.read(stream, upTo: .max) else { return false }
            parser.feed(bytes)
        }
        return true
    }

    /// Moves the messages that are here to `messages`, until it has `bytes` of payload.
    mutating func take(
        from session: inout YamuxSession, to messages: inout [Message], budget bytes: inout Int
    ) throws(LengthPrefixedMessages.TooLong) {
        while bytes > 0, try hasMessage(in: &session), let payload = whole {
            whole = nil
            messages.append(Message(payload, delivery: delivery))
            // An empty message takes room too.
            bytes -= payload.count + 64
        }
    }
}
