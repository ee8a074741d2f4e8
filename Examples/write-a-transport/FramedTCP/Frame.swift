internal import TransportKit

/// What travels after the target: a length, a code and the rest, the two numbers as varints. The code is 0 for a message, 1
/// for a close that gives none, else that of the close.
enum Frame {
    case message(Bytes)
    case close(CloseCode, reason: String)

    /// Reads a frame whose length is off already; nil where it makes no sense.
    init?(_ frame: Bytes) {
        guard let (code, length) = Varint.read(from: frame) else { return nil }
        let body = frame.dropFirst(length)
        switch code {
        case 0: self = .message(body)
        case 1: self = .close(.noneGiven, reason: "")
        default: self = .close(CloseCode(rawValue: code), reason: String(validating: body) ?? "")
        }
    }

    /// Puts the frame behind `wire`.
    func write(to wire: inout Bytes) {
        switch self {
        case .message(let payload): Self.write(0, payload, to: &wire)
        case .close(let code, _) where code.isSynthetic || code.rawValue < 2: Self.write(1, Bytes(), to: &wire)
        case .close(let code, let reason): Self.write(min(code.rawValue, Varint.max), Bytes(reason), to: &wire)
        }
    }

    private static func write(_ code: UInt64, _ body: Bytes, to wire: inout Bytes) {
        wire.append(contentsOf: LengthPrefixedMessages.header(for: Varint.length(of: code) + body.count))
        Varint.append(code, to: &wire)
        wire.append(contentsOf: body)
    }
}
