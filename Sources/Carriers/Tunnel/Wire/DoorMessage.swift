package import TransportKit

/// What one message of the link to a door is, by its first byte.
package enum DoorMessage: Sendable, Hashable {
    /// A message of the handshake with the door.
    case handshake(Bytes)
    /// A control message, sealed for the other end of the link.
    case sealed(Bytes)
    /// A message of a session that travels through the door; what it carries was sealed end to end.
    case frame(TunnelFrame)
    /// A kind that this version does not know. It is passed over.
    case unknown(UInt8)

    private static let handshakeKind: UInt8 = 0
    private static let sealedKind: UInt8 = 1

    /// The message on the wire.
    ///
    /// - Precondition: it is within ``DoorLimits``, and not unknown: nobody sends what it does not know.
    package func encoded() -> Bytes {
        switch self {
        case .handshake(let message):
            precondition((1...DoorLimits.handshake).contains(message.count), "a handshake of \(message.count) bytes")
            return message.preceded(by: Self.handshakeKind)
        case .sealed(let message):
            precondition(Self.sealedLengths.contains(message.count), "a sealed message of \(message.count) bytes")
            return message.preceded(by: Self.sealedKind)
        case .frame(let frame):
            return frame.encoded()
        case .unknown(let kind):
            preconditionFailure("a message of kind \(kind), which this version does not know")
        }
    }

    /// Reads a message of the link.
    ///
    /// - Parameters:
    ///   - message: what arrived.
    ///   - way: between whom.
    ///   - isDatagram: whether it came as one; then it can only be an unreliable frame.
    package static func decode(
        _ message: Bytes, _ way: DoorWay, isDatagram: Bool = false
    ) throws(DoorWireError) -> DoorMessage {
        guard message.count <= DoorLimits.message else { throw DoorWireError(.tooLong, in: "message", at: 0) }
        guard !message.isEmpty else { throw DoorWireError(.cutShort, in: "message", at: 0) }
        let first = message[0]
        switch first {
        case handshakeKind:
            if isDatagram { throw DoorWireError(.misplaced, in: "handshake", at: 0) }
            guard message.count > 1 else { throw DoorWireError(.cutShort, in: "handshake", at: 0) }
            guard message.count <= 1 + DoorLimits.handshake else {
                throw DoorWireError(.tooLong, in: "handshake", at: 1)
            }
            return .handshake(message.dropFirst())
        case sealedKind:
            if isDatagram { throw DoorWireError(.misplaced, in: "sealed", at: 0) }
            guard message.count - 1 >= sealedLengths.lowerBound else {
                throw DoorWireError(.cutShort, in: "sealed", at: 0)
            }
            guard message.count - 1 <= sealedLengths.upperBound else {
                throw DoorWireError(.tooLong, in: "sealed", at: 1)
            }
            return .sealed(message.dropFirst())
        case _:
            guard let kind = TunnelFrame.Kind(rawValue: first) else { return .unknown(first) }
            if isDatagram, kind != .unreliable { throw DoorWireError(.misplaced, in: kind.name, at: 0) }
            return .frame(try TunnelFrame(kind, reading: message, way))
        }
    }

    private static let sealedLengths = 1 + DoorLimits.seal...DoorLimits.control + DoorLimits.seal
}

extension Bytes {
    fileprivate func preceded(by byte: UInt8) -> Bytes {
        var message = self
        message.prepend(contentsOf: [byte])
        return message
    }
}
