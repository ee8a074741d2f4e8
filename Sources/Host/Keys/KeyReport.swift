internal import NoiseCarrier
internal import TunnelCarrier

/// What may be known of a key: the answer to `transportkit keygen`.
package struct KeyReport: Codable, Sendable {
    /// The file that holds the private half.
    package var file: String
    /// What its peers know it by.
    package var publicKey: String
    /// The home that a box with this key has.
    package var home: String
    /// By what name a door knows a client with this key.
    package var device: String

    /// Makes a new key.
    package static func make(_ file: String) throws -> KeyReport { KeyReport(file, try KeyFile.make(file)) }

    /// Reads the key of a file.
    package static func read(_ file: String) throws -> KeyReport { KeyReport(file, try KeyFile.read(file).publicKey) }

    private init(_ file: String, _ key: StaticPublicKey) {
        self.file = file
        publicKey = "\(key)"
        home = "\(HomeID(of: key))"
        device = "\(DeviceID(of: key))"
    }

    /// The report as one line of JSON.
    package var json: String { String(decoding: ControlCoding.line(self), as: UTF8.self) }
}
