public import NoiseCarrier
public import TransportKit

/// By what name a door tells the devices of a home apart.
///
/// It only routes: who a device is, the box learns from the session that the device opens with it.
public struct DeviceID: Sendable, Hashable {
    let id: KeyID

    /// The id of the device with this key.
    public init(of key: StaticPublicKey) {
        id = KeyID(label: "transportkit.device.v1", key: key)
    }

    /// Reads the text form: 26 characters of base32, in lower case and without padding. Nil for any other text.
    public init?(_ text: String) {
        guard let id = KeyID(text: text) else { return nil }
        self.id = id
    }

    /// Takes the 16 bytes that the text stands for; nil for any other count.
    public init?(_ bytes: Bytes) {
        guard bytes.count == KeyID.length else { return nil }
        id = KeyID(bytes)
    }

    /// The 16 bytes that the text stands for.
    public var bytes: Bytes {
        var bytes = Bytes()
        id.append(to: &bytes)
        return bytes
    }
}

extension DeviceID: CustomStringConvertible {
    /// The text form: 26 characters of base32.
    public var description: String { id.text }
}
