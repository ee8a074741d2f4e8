internal import TransportKit

/// What travels: its length as a varint, a byte that says what it is, and the rest.
enum Frame {
    case message(Bytes)
    case close(CloseCode, reason: String)
    case target(Target)

    /// A code that must not travel goes as 0 (R120).
    static func close(_ close: Close) -> Frame {
        close.code.isSynthetic
            ? .close(CloseCode(rawValue: 0), reason: "") : .close(close.code, reason: close.wireReason)
    }

    /// Reads a frame whose length is off already; nil where it makes no sense.
    init?(_ frame: Bytes) {
        let body = frame.dropFirst()
        switch frame.first(where: { _ in true }) {
        case 0:
            self = .message(body)
        case 1:
            guard let (code, length) = Varint.read(from: body), let reason = String(validating: body.dropFirst(length))
            else { return nil }
            self = .close(code == 0 ? .noneGiven : CloseCode(rawValue: code), reason: reason)
        case 2:
            guard let target = String(validating: body).flatMap({ Target($0) }) else { return nil }
            self = .target(target)
        default:
            return nil
        }
    }

    /// Puts the frame behind `wire`.
    func write(to wire: inout Bytes) {
        switch self {
        case .message(let payload): Self.write(payload, kind: 0, to: &wire)
        case .close(let code, let reason):
            var body = Bytes()
            Varint.append(min(code.rawValue, Varint.max), to: &body)
            body.append(contentsOf: Bytes(reason))
            Self.write(body, kind: 1, to: &wire)
        case .target(let target): Self.write(Bytes(target.wireForm), kind: 2, to: &wire)
        }
    }

    private static func write(_ body: Bytes, kind: UInt8, to wire: inout Bytes) {
        wire.append(contentsOf: LengthPrefixedMessages.header(for: 1 + body.count))
        wire.append(kind)
        wire.append(contentsOf: body)
    }
}
