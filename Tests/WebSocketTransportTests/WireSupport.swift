import TransportKit
import WebSocketTransport

/// Bytes written as hexadecimal digits; spaces are let through.
func hex(_ text: String) -> Bytes {
    var digits = text.filter { $0 != " " }[...]
    var bytes = Bytes()
    while !digits.isEmpty {
        guard let byte = UInt8(digits.prefix(2), radix: 16) else { preconditionFailure("not hexadecimal: \(text)") }
        bytes.append(byte)
        digits = digits.dropFirst(2)
    }
    return bytes
}

extension Bytes {
    static func + (left: Bytes, right: Bytes) -> Bytes {
        var sum = left
        sum.append(contentsOf: right)
        return sum
    }
}

/// One frame as a peer would write it, right or wrong, made without the code under test.
func frame(
    _ first: UInt8, _ payload: Bytes = Bytes(), key: [UInt8]? = nil, lengthBytes: Int? = nil, announced: UInt64? = nil
) -> Bytes {
    let length = announced ?? UInt64(payload.count)
    let form = lengthBytes ?? (length < 126 ? 0 : length < 65_536 ? 2 : 8)
    var bytes = Bytes([first])
    let mask: UInt8 = key == nil ? 0 : 0x80
    bytes.append(mask | (form == 0 ? UInt8(length) : form == 2 ? 126 : 127))
    for index in (0..<form).reversed() { bytes.append(UInt8(truncatingIfNeeded: length >> UInt64(8 * index))) }
    guard let key else { return bytes + payload }
    bytes.append(contentsOf: key)
    for (index, byte) in payload.enumerated() { bytes.append(byte ^ key[index % 4]) }
    return bytes
}

/// What a wire made of some bytes.
struct Received: Equatable {
    var messages: [Message] = []
    var failure: WireFailure?
    var close: CloseFrame?
    var answers = Bytes()
}

/// Feeds bytes, in pieces of at most `step`, to one end.
func receive(
    _ bytes: Bytes, as role: WebSocketWire.Role, limit: Int = 1 << 20, step: Int = .max
) -> Received {
    var wire = WebSocketWire(role: role, maxMessageBytes: limit)
    var received = Received()
    var rest = bytes
    while !rest.isEmpty, received.failure == nil {
        let piece = rest.takeFirst(min(step, rest.count))
        do throws(WireFailure) {
            try piece.withUnsafeBytes { bytes throws(WireFailure) in
                try wire.receive(bytes, into: &received.messages)
            }
        } catch {
            received.failure = error
        }
    }
    received.close = wire.peerClose
    wire.writeAnswers(into: &received.answers)
    return received
}
