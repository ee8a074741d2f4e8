public import TransportKit

/// What both ends must agree on before they say anything; ends with different prologues do not understand each other.
public struct NoisePrologue: Sendable, Hashable {
    private enum Kind: Hashable {
        case label(Bytes)
        case bytes(Bytes)
    }

    private let kind: Kind

    /// A label in front of the responder's static public key.
    public static func label(_ label: String) -> NoisePrologue { NoisePrologue(kind: .label(Bytes(label))) }

    /// Any bytes.
    public static func bytes(_ bytes: Bytes) -> NoisePrologue { NoisePrologue(kind: .bytes(bytes)) }

    /// That of the end-to-end session with a box.
    public static let session = NoisePrologue.label("ftw.session.v1:")

    /// The bytes, where this is the responder's key.
    public func bytes(responder: StaticPublicKey) -> Bytes {
        switch kind {
        case .label(var label):
            label.append(contentsOf: responder.bytes)
            return label
        case .bytes(let bytes):
            return bytes
        }
    }
}
