public import TransportKit

/// What a door is shown of a pairing code: enough to let its holder through to the box, and nothing to learn the code from
/// (R88, R89).
public struct PairingHash: Sendable, Hashable {
    /// How many bytes a pairing code has.
    public static let codeLength = 16

    /// The 32 bytes.
    public let bytes: Bytes

    /// Hashes a code for a home; nil where the code does not have ``codeLength`` bytes.
    public init?(home: HomeID, code: Bytes) {
        guard code.count == Self.codeLength else { return nil }
        bytes = Hash.sha256(Bytes("transportkit.pair.v1"), [0], Bytes(home.description), code)
    }

    /// Takes a hash of 32 bytes; nil for any other count.
    public init?(_ bytes: Bytes) {
        guard bytes.count == Hash.length else { return nil }
        self.bytes = bytes
    }
}

extension PairingHash: CustomStringConvertible {
    /// That it is the hash of a pairing code, and no more: whoever knows the hash gets past the door.
    public var description: String { "a pairing hash" }
}
