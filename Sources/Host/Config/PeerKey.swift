internal import NoiseCarrier

/// The public key of a peer, as an option.
struct PeerKey: Decodable, Sendable {
    let key: StaticPublicKey

    // What was written there is not repeated: it may be a private key that got there by mistake (B23).
    struct Invalid: Error, CustomStringConvertible {
        let description =
            "must be a public key as `transportkit keygen` prints it: 43 characters of base64url, or 64 hexadecimal digits"
    }

    init(_ key: StaticPublicKey) { self.key = key }

    init(from decoder: any Decoder) throws {
        guard let key = StaticPublicKey(try decoder.singleValueContainer().decode(String.self)) else {
            throw Invalid()
        }
        self.key = key
    }
}
