/// The X25519 key that an end keeps, and by which its peers know it.
///
/// It lies in locked memory of its own, which is wiped with the last holder. It is never printed: neither its description
/// nor its mirror shows anything of it.
public final class StaticPrivateKey: Sendable {
    let secret: Secret
    /// What others know it by.
    public let publicKey: StaticPublicKey

    /// Draws a new key.
    public init() {
        secret = Secret(count: Sodium.keyLength, isGuarded: true)
        secret.randomize()
        publicKey = StaticPublicKey(of: secret)
    }

    /// Copies a key of 32 bytes; nil for any other count. Wiping `bytes` stays the caller's affair.
    public init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Sodium.keyLength else { return nil }
        secret = Secret(count: Sodium.keyLength, isGuarded: true)
        unsafe secret.fill(from: bytes)
        publicKey = StaticPublicKey(of: secret)
    }

    /// Reads the text form, 43 characters of base64url without padding, or 64 hexadecimal digits.
    public init?(_ text: String) {
        secret = Secret(count: Sodium.keyLength, isGuarded: true)
        guard KeyText.read(text, into: secret) else { return nil }
        publicKey = StaticPublicKey(of: secret)
    }

    /// Gives `body` the key, to be stored where nobody else can read it.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(UnsafeRawBufferPointer(start: secret.pointer, count: secret.count))
    }

    /// The text form, to be stored where nobody else can read it: 43 characters of base64url without padding. What is made of
    /// it is not wiped.
    public func exportText() -> String {
        unsafe withUnsafeBytes { unsafe KeyText.write($0) }
    }
}

extension StaticPrivateKey: Equatable {
    /// Whether both are the same key, found out in a time that does not depend on them.
    public static func == (left: StaticPrivateKey, right: StaticPrivateKey) -> Bool {
        left.secret.equals(right.secret)
    }
}

extension StaticPrivateKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// That it is a private key, and no more.
    public var description: String { "a private key" }

    /// That it is a private key, and no more.
    public var debugDescription: String { description }

    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
