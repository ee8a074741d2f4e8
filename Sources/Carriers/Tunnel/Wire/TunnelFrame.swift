package import TransportKit

/// One message of a session that travels through the door, and of which the door reads no more than this.
package struct TunnelFrame: Sendable, Hashable {
    /// How it is meant to travel. Its number is the first byte on the wire.
    package enum Kind: UInt8, Sendable, CaseIterable {
        /// The first message of a session.
        case begin = 2
        /// As a control message; empty it ends the session.
        case control = 3
        /// As a bulk message.
        case bulk = 4
        /// As a datagram, or not at all.
        case unreliable = 5

        package var name: String {
            switch self {
            case .begin: "begin"
            case .control: "tun"
            case .bulk: "tun-bulk"
            case .unreliable: "tun-unreliable"
            }
        }
    }

    package var kind: Kind
    /// Whose session it is; between client and door, nil.
    package var device: DeviceID?
    package var session: TunnelSessionID
    package var payload: Bytes

    package init(_ kind: Kind, device: DeviceID? = nil, session: TunnelSessionID, payload: Bytes) {
        self.kind = kind
        self.device = device
        self.session = session
        self.payload = payload
    }

    /// The end of a session.
    package static func end(device: DeviceID? = nil, session: TunnelSessionID) -> TunnelFrame {
        TunnelFrame(.control, device: device, session: session, payload: Bytes())
    }

    /// Whether it ends its session (R80).
    package var isEnd: Bool { kind == .control && payload.isEmpty }

    /// What it takes of the session's credit: nothing for an end and for what may be lost.
    package var cost: UInt64 {
        switch kind {
        case .begin, .control, .bulk: isEnd ? 0 : UInt64(payload.count + DoorLimits.frameCost)
        case .unreliable: 0
        }
    }

    /// How many bytes stand in front of the payload.
    package static func headerLength(_ way: DoorWay) -> Int {
        way.isBoxLeg ? 1 + KeyID.length + 8 : 1 + 8
    }

    /// The message on the wire; the header goes into the payload's headroom where there is enough of it and nobody else holds
    /// the payload.
    ///
    /// - Precondition: the payload has a length that the kind allows.
    package consuming func encoded() -> Bytes {
        precondition(Self.allowed(kind).contains(payload.count), "a frame with a payload of \(payload.count) bytes")
        var message = Bytes()
        swap(&message, &payload)
        let (first, device, session) = (kind.rawValue, device?.id, session.rawValue)
        // On the stack: this is done for every frame that a door passes on.
        unsafe withUnsafeTemporaryAllocation(byteCount: 1 + KeyID.length + 8, alignment: 8) { room in
            unsafe room[0] = first
            var length = 1
            if let device {
                unsafe room.storeBytes(of: device.high.bigEndian, toByteOffset: 1, as: UInt64.self)
                unsafe room.storeBytes(of: device.low.bigEndian, toByteOffset: 9, as: UInt64.self)
                length += KeyID.length
            }
            unsafe room.storeBytes(of: session.bigEndian, toByteOffset: length, as: UInt64.self)
            unsafe message.prepend(contentsOf: UnsafeRawBufferPointer(rebasing: room[..<(length + 8)]))
        }
        return message
    }

    /// Reads a message whose first byte is `kind`.
    init(_ kind: Kind, reading message: Bytes, _ way: DoorWay) throws(DoorWireError) {
        switch (kind, way) {
        case (.begin, .doorToClient), (.begin, .boxToDoor):
            throw DoorWireError(.misplaced, in: kind.name, at: 0)
        case (.begin, .clientToDoor), (.begin, .doorToBox), (.control, _), (.bulk, _), (.unreliable, _):
            break
        }
        let header = Self.headerLength(way)
        guard message.count >= header else { throw DoorWireError(.cutShort, in: kind.name, at: 0) }
        let payload = message.dropFirst(header)
        guard payload.count <= DoorLimits.framePayload else { throw DoorWireError(.tooLong, in: kind.name, at: header) }
        guard Self.allowed(kind).contains(payload.count) else {
            throw DoorWireError(.badLength, in: kind.name, at: header)
        }
        self.kind = kind
        self.payload = payload
        device = way.isBoxLeg ? DeviceID(message[1..<1 + KeyID.length]) : nil
        session = TunnelSessionID(rawValue: message.bigEndian(at: header - 8))
    }

    private static func allowed(_ kind: Kind) -> ClosedRange<Int> {
        switch kind {
        case .begin: 1...DoorLimits.firstPayload
        case .control: 0...DoorLimits.framePayload
        case .bulk, .unreliable: 1...DoorLimits.framePayload
        }
    }
}
