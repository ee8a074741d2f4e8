package import TransportKit

extension DoorControl {
    /// The message before it is sealed.
    ///
    /// - Precondition: its values are within ``DoorLimits``, and it is not unknown.
    package func encoded() -> Bytes {
        switch self {
        case .enter: return Self.begin(.enter)
        case .entered: return Self.begin(.entered)
        case .linked: return Self.begin(.linked)
        case .box(let capabilities):
            var bytes = Self.begin(.box)
            if let capabilities { bytes.append(.caps, capabilities.wireForm) }
            return bytes
        case .credit(let device, let session, let total):
            precondition(total <= Varint.max, "credit beyond what the wire holds")
            var bytes = Self.begin(.credit)
            if let device { bytes.append(.device, device.bytes) }
            bytes.append(.sid, session.rawValue)
            bytes.append(.total, total)
            return bytes
        case .roster(let keys, let more):
            var bytes = Self.begin(.roster)
            bytes.append(.keys, keys.wireForm)
            bytes.append(.more, [more ? 1 : 0])
            return bytes
        case .admit(let keys):
            var bytes = Self.begin(.admit)
            bytes.append(.keys, keys.wireForm)
            return bytes
        case .revoke(let keys):
            var bytes = Self.begin(.revoke)
            bytes.append(.keys, keys.wireForm)
            return bytes
        case .expect(let hash, let seconds):
            precondition(DoorLimits.pairingSeconds.contains(seconds), "a pairing code for \(seconds) s")
            var bytes = Self.begin(.expect)
            bytes.append(.pair, hash.bytes)
            bytes.append(.seconds, seconds)
            return bytes
        case .forget(let hash):
            var bytes = Self.begin(.forget)
            bytes.append(.pair, hash.bytes)
            return bytes
        case .check(let nonce):
            var bytes = Self.begin(.check)
            bytes.append(.nonce, nonce)
            return bytes
        case .here(let nonce):
            var bytes = Self.begin(.here)
            bytes.append(.nonce, nonce)
            return bytes
        case .unknown(let kind):
            preconditionFailure("a message of type \(kind), which this version does not know")
        }
    }

    /// Reads a message that was unsealed.
    package static func decode(_ message: Bytes, _ way: DoorWay) throws(DoorWireError) -> DoorControl {
        guard message.count <= DoorLimits.control else { throw DoorWireError(.tooLong, in: "control", at: 0) }
        guard !message.isEmpty else { throw DoorWireError(.cutShort, in: "control", at: 0) }
        guard let kind = Kind(rawValue: message[0]) else { return .unknown(message[0]) }
        guard kind.isSaid(way) else { throw DoorWireError(.misplaced, in: kind.name, at: 0) }
        let fields = try DoorFields(message, from: 1, of: kind.name)
        switch kind {
        case .enter: return .enter
        case .entered: return .entered
        case .linked: return .linked
        case .box: return .box(try fields.capabilitiesIfAny())
        case .credit:
            return .credit(
                device: way.isBoxLeg ? try fields.device() : nil, session: try fields.session(),
                total: try fields.total())
        case .roster: return .roster(try fields.keys(), more: try fields.more())
        case .admit: return .admit(try fields.keys())
        case .revoke: return .revoke(try fields.keys())
        case .expect: return .expect(try fields.pair(), seconds: try fields.seconds())
        case .forget: return .forget(try fields.pair())
        case .check: return .check(nonce: try fields.nonce())
        case .here: return .here(nonce: try fields.nonce())
        }
    }

    private static func begin(_ kind: Kind) -> Bytes { [kind.rawValue] }
}
