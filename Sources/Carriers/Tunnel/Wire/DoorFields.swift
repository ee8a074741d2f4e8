internal import NoiseCarrier
internal import TransportKit

/// The fields of one message, taken apart; each is looked at when it is asked for, in ascending order.
struct DoorFields {
    private struct Found {
        let number: UInt8
        let offset: Int
        let value: Bytes
    }

    private let message: String
    private let end: Int
    private var found: [Found] = []

    /// Takes `bytes` apart from `start` on. Fields that nobody asks for are passed over, as those of later versions must be.
    init(_ bytes: Bytes, from start: Int, of message: String) throws(DoorWireError) {
        self.message = message
        end = bytes.count
        var offset = start
        while offset < bytes.count {
            let number = bytes[offset]
            guard let (length, size) = Varint.read(from: bytes, at: offset + 1),
                length <= UInt64(bytes.count - offset - 1 - size)
            else { throw DoorWireError(.cutShort, in: message, at: offset) }
            if let last = found.last, last.number >= number {
                throw DoorWireError(.outOfOrder, in: message, at: offset)
            }
            let value = offset + 1 + size
            let next = value + Int(length)
            found.append(Found(number: number, offset: offset, value: bytes[value..<next]))
            offset = next
        }
    }

    /// Takes the payload of a handshake message apart.
    init(greeting payload: Bytes, of message: String) throws(DoorWireError) {
        guard payload.count <= DoorLimits.handshake else { throw DoorWireError(.tooLong, in: message, at: 0) }
        try self.init(payload, from: 0, of: message)
    }

    func home() throws(DoorWireError) -> HomeID {
        try require(.home) { HomeID($0) }
    }

    func pair() throws(DoorWireError) -> PairingHash {
        try require(.pair) { PairingHash($0) }
    }

    func pairIfAny() throws(DoorWireError) -> PairingHash? {
        has(.pair) ? try pair() : nil
    }

    func firstFrameIfAny() throws(DoorWireError) -> TunnelFrame? {
        guard has(.tun) else { return nil }
        return try require(.tun) { value in
            guard (9...8 + DoorLimits.firstPayload).contains(value.count) else { return nil }
            return TunnelFrame(
                .begin, session: TunnelSessionID(rawValue: value.bigEndian(at: 0)), payload: value.dropFirst(8))
        }
    }

    func window() throws(DoorWireError) -> UInt32 {
        try number(.window, in: DoorLimits.window)
    }

    func seconds() throws(DoorWireError) -> UInt32 {
        try number(.seconds, in: DoorLimits.pairingSeconds)
    }

    func capabilitiesIfAny() throws(DoorWireError) -> BoxCapabilities? {
        has(.caps) ? try capabilities() : nil
    }

    func capabilities() throws(DoorWireError) -> BoxCapabilities {
        let value: Bytes = try require(.caps) { $0 }
        guard let capabilities = BoxCapabilities(reading: value) else { throw fault(.badValue, .caps) }
        return capabilities
    }

    func device() throws(DoorWireError) -> DeviceID {
        try require(.device) { DeviceID($0) }
    }

    func session() throws(DoorWireError) -> TunnelSessionID {
        TunnelSessionID(rawValue: try eightBytes(.sid))
    }

    func total() throws(DoorWireError) -> UInt64 {
        let total = try eightBytes(.total)
        guard total <= Varint.max else { throw fault(.badValue, .total) }
        return total
    }

    func nonce() throws(DoorWireError) -> UInt64 {
        try eightBytes(.nonce)
    }

    /// Keys in strictly ascending order: each once.
    func keys() throws(DoorWireError) -> DeviceKeys {
        let value: Bytes = try require(.keys) { value in
            value.count % 32 == 0 && value.count <= 32 * DoorLimits.keys ? value : nil
        }
        guard let keys = DeviceKeys(ascending: value) else { throw fault(.badValue, .keys) }
        return keys
    }

    func more() throws(DoorWireError) -> Bool {
        let value: UInt8 = try require(.more) { $0.count == 1 ? $0[0] : nil }
        guard value <= 1 else { throw fault(.badValue, .more) }
        return value == 1
    }

    func boxKey() throws(DoorWireError) -> StaticPublicKey {
        try require(.box) { StaticPublicKey($0) }
    }

    /// One key, or two different ones, the one to try first in front.
    func doorKeys() throws(DoorWireError) -> [StaticPublicKey] {
        let keys: [StaticPublicKey] = try require(.doors) { value in
            guard value.count == 32 || value.count == 64 else { return nil }
            return stride(from: 0, to: value.count, by: 32).compactMap { StaticPublicKey(value[$0..<$0 + 32]) }
        }
        guard keys.count == Set(keys).count else { throw fault(.badValue, .doors) }
        return keys
    }

    func code() throws(DoorWireError) -> Bytes {
        try require(.code) { $0.count == PairingHash.codeLength ? $0 : nil }
    }

    func url() throws(DoorWireError) -> ServiceURL {
        let value: Bytes = try require(.url) { (1...PairingLine.maxURLBytes).contains($0.count) ? $0 : nil }
        guard let text = String(validating: value), let url = try? ServiceURL(text), url.endpoint.port > 0 else {
            throw fault(.badValue, .url)
        }
        return url
    }

    func pinsIfAny() throws(DoorWireError) -> [PublicKeyHash] {
        guard has(.pins) else { return [] }
        return try require(.pins) { value in
            guard value.count % 32 == 0, (1...PairingLine.maxPins).contains(value.count / 32) else { return nil }
            return stride(from: 0, to: value.count, by: 32).compactMap { PublicKeyHash(value[$0..<$0 + 32]) }
        }
    }

    private func number(_ field: DoorField, in range: ClosedRange<UInt32>) throws(DoorWireError) -> UInt32 {
        let value: UInt32 = try require(field) { value in
            guard value.count == 4 else { return nil }
            return value.reduce(0) { $0 << 8 | UInt32($1) }
        }
        guard range.contains(value) else { throw fault(.badValue, field) }
        return value
    }

    private func eightBytes(_ field: DoorField) throws(DoorWireError) -> UInt64 {
        try require(field) { $0.count == 8 ? $0.bigEndian(at: 0) : nil }
    }

    private func has(_ field: DoorField) -> Bool {
        found.contains { $0.number == field.rawValue }
    }

    /// The value of a field as `read` makes it; nil from `read` means that its length is wrong.
    private func require<Value>(
        _ field: DoorField, _ read: (Bytes) -> Value?
    ) throws(DoorWireError) -> Value {
        guard let raw = found.first(where: { $0.number == field.rawValue }) else { throw fault(.missing, field) }
        guard let value = read(raw.value) else { throw fault(.badLength, field) }
        return value
    }

    private func fault(_ fault: DoorWireError.Fault, _ field: DoorField) -> DoorWireError {
        let offset = found.first { $0.number == field.rawValue }?.offset
        return DoorWireError(fault, in: message, field: field.name, at: offset ?? end)
    }
}
