public import NoiseCarrier
public import TransportKit

/// Who may have sessions with a box. Any task may call it, any number at once.
public protocol BoxAdmission: Sendable {
    /// The devices of the home, all of them; asked for at every link to the door.
    func roster() async -> [StaticPublicKey]

    /// Whether a device is let in. Its message 1 has proved that it owns the key, or once did.
    ///
    /// Where it shows a fresh pairing code and is no device of the home yet, the code is used up and the device is added here;
    /// the uplink tells the door afterwards.
    ///
    /// - Parameters:
    ///   - key: who the device is.
    ///   - code: the pairing code that its message 1 brought: 16 bytes, or none.
    func admits(_ key: StaticPublicKey, code: Bytes) async -> Bool
}
