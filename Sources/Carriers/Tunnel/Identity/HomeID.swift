public import NoiseCarrier
public import TransportKit

/// By what name a door knows the home of a box (R95).
///
/// It certifies itself: whoever has proved to own the box's key owns the home, so a door needs no list of homes.
public struct HomeID: Sendable, Hashable {
    let id: KeyID

    /// The home of the box with this key.
    public init(of key: StaticPublicKey) {
        id = KeyID(label: "transportkit.home.v1", key: key)
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

extension HomeID: CustomStringConvertible {
    /// The text form: 26 characters of base32.
    public var description: String { id.text }
}
