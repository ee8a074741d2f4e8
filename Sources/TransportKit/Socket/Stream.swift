/// A byte stream inside a socket, open in both directions until each is finished or reset.
///
/// **Concurrency.** One read and one write may wait at a time; a second one throws ``StreamError/misuse(_:)`` (R196).
/// **Cancellation.** Cancelling a waiting read or write resets the stream, since bytes may be half way (R196).
/// **End.** Bytes that came with the end are read first; then `read` returns nil, and does so every time (R192).
public protocol Stream: AnyObject, Sendable {
    /// The number of the stream, unique in its socket.
    var id: UInt64 { get }

    /// Waits for bytes and returns at least one and at most `limit` of them; nil after the peer's last byte.
    ///
    /// Credit goes back to the peer as bytes are read (R187).
    func read(upTo limit: Int) async throws(StreamError) -> Bytes?

    /// Hands over bytes, whole and in order. Suspends while the stream's window or buffer is full.
    func write(_ bytes: Bytes) async throws(StreamError)

    /// Ends this end's direction after the bytes written; the other direction stays open (B12). Finishing twice is
    /// harmless.
    func finish() async throws(StreamError)

    /// Aborts both directions at once: bytes on their way may be lost, and the peer sees a reset, never an end, unless it
    /// has read the end already. Every later call here throws the reset; resetting twice is harmless.
    ///
    /// - Parameter code: travels where the wire has room for it (QUIC); elsewhere the peer sees 0.
    func reset(_ code: UInt64) async
}

/// Why a call on a stream failed.
public struct StreamError: Error, Sendable, Hashable {
    private enum Code: Hashable {
        case reset(UInt64)
        case socketClosed(Close)
        case finished
        case cancelled
        case misuse(String)
    }

    private let code: Code

    /// The peer, or this end, reset the stream.
    public static func reset(_ code: UInt64) -> StreamError { StreamError(code: .reset(code)) }
    /// The socket under the stream ended.
    public static func socketClosed(_ close: Close) -> StreamError { StreamError(code: .socketClosed(close)) }
    /// A write after `finish()`.
    public static let finished = StreamError(code: .finished)
    /// The waiting task was cancelled; the stream has been reset.
    public static let cancelled = StreamError(code: .cancelled)
    /// The caller broke the contract; the stream goes on.
    public static func misuse(_ what: String) -> StreamError { StreamError(code: .misuse(what)) }

    /// The code of the reset, if one ended the stream.
    public var resetCode: UInt64? {
        if case .reset(let number) = code { number } else { nil }
    }

    /// The end of the socket, if that ended the stream.
    public var close: Close? {
        if case .socketClosed(let close) = code { close } else { nil }
    }

    /// Whether the call was against the contract.
    public var isMisuse: Bool {
        if case .misuse = code { true } else { false }
    }
}

extension StreamError: CustomStringConvertible {
    /// What happened, in words.
    public var description: String {
        switch code {
        case .reset(let number): "the stream was reset with \(number)"
        case .socketClosed(let close): "the socket ended: \(close)"
        case .finished: "the stream was already finished"
        case .cancelled: "the waiting task was cancelled"
        case .misuse(let what): what
        }
    }
}
