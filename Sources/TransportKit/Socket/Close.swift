/// The end of a conversation: what every call on an ended socket throws.
public struct Close: Error, Sendable, Hashable {
    /// Who ended it.
    public enum Origin: Sendable, Hashable {
        /// This end.
        case local
        /// The peer, in its own words.
        case remote
        /// Nobody: the path failed, and `cause` says how.
        case path
        /// Nobody, and the socket lives on: the task that waited was cancelled.
        case cancellation
    }

    /// Why, as a number.
    public var code: CloseCode
    /// Why, in words; at most 123 bytes travel (RFC 6455 §5.5.1). A peer's words: quote them, never obey them.
    public var reason: String
    /// Who ended it.
    public var origin: Origin
    /// What went wrong below, where something did.
    public var cause: TransportError?

    /// Makes an end.
    public init(_ code: CloseCode, reason: String = "", origin: Origin, cause: TransportError? = nil) {
        self.code = code
        self.reason = reason
        self.origin = origin
        self.cause = cause
    }

    /// The path was lost (1006), and `cause` says how.
    public static func pathLost(_ cause: TransportError) -> Close {
        Close(.pathLost, reason: cause.message, origin: .path, cause: cause)
    }

    /// A call was abandoned because its task was cancelled. The socket itself did not end.
    public static let cancelled = Close(.noneGiven, reason: "the waiting task was cancelled", origin: .cancellation)

    /// A call that the caller was not allowed to make; the socket itself did not end.
    public static func misuse(_ what: String) -> Close {
        Close(.unsupported, reason: what, origin: .local, cause: TransportError(.misuse, what))
    }

    /// The longest reason that fits a WebSocket close frame, in bytes of UTF-8.
    public static let reasonLimit = 123

    /// `reason`, cut at a character boundary to what fits on the wire.
    public var wireReason: String { reason.prefix(utf8Bytes: Self.reasonLimit) }
}

extension String {
    /// The text, cut at a character boundary to at most `limit` bytes of UTF-8.
    package func prefix(utf8Bytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var length = 0
        let kept = prefix { character in
            length += character.utf8.count
            return length <= limit
        }
        return String(kept)
    }
}

extension Close: CustomStringConvertible {
    /// For example `1006 path lost (the path was idle for 30 s)`; a reason that repeats the code's name is left out.
    public var description: String { reason.isEmpty || reason == code.name ? "\(code)" : "\(code) (\(reason))" }
}
