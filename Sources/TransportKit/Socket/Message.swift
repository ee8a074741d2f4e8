/// How a message travels.
public enum Delivery: Sendable, Hashable, CaseIterable {
    /// In order with other control messages, ahead of bulk.
    case control
    /// In order with other bulk; on a path of its own where the wire has one, so that it never delays control (R22).
    case bulk
    /// As a datagram where the wire has them, else as `control` (R9). It may be lost or overtaken.
    case unreliable
}

/// What the bytes of a message are. Only the WebSocket tells the two apart on the wire (R6).
public enum MessageFormat: Sendable, Hashable {
    /// Any bytes.
    case binary
    /// UTF-8, checked by whoever receives it. Needs ``Capabilities/text``.
    case text
}

/// One message of a conversation.
public struct Message: Sendable, Hashable {
    /// The bytes, as they were sent.
    public var payload: Bytes
    /// How it travels or, on a received message, how it came.
    public var delivery: Delivery
    /// What the bytes are.
    public var format: MessageFormat

    /// Makes a message.
    public init(_ payload: Bytes, delivery: Delivery = .control, format: MessageFormat = .binary) {
        self.payload = payload
        self.delivery = delivery
        self.format = format
    }

    /// Makes a text message; needs ``Capabilities/text``.
    public static func text(_ string: String) -> Message {
        Message(Bytes(string), delivery: .control, format: .text)
    }
}
