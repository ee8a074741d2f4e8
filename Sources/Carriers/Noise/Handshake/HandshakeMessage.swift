internal import TransportKit

/// The two messages of the pattern IK (part 2.2).
enum HandshakeMessage {
    /// `e`, the sealed `s` and the tag of the payload.
    static let firstLength = 96
    /// `e` and the tag of the payload.
    static let secondLength = 48
    /// Noise rev 34, §3.
    static let limit = 65_535

    /// Checks the length of a message with a payload, or of one that arrived.
    static func check(_ length: Int, least: Int) throws(NoiseError) {
        guard length >= least else { throw .messageTooShort }
        guard length <= limit else { throw .messageTooLong }
    }

    /// A key for one handshake.
    static func ephemeral() -> Secret {
        let key = Secret(count: Sodium.keyLength)
        key.randomize()
        return key
    }
}
