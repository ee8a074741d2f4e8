internal import CSodium
public import TransportKit

/// Who an end is: the public half of an X25519 key that it keeps.
public struct StaticPublicKey: Sendable {
    /// The 32 bytes.
    public let bytes: Bytes

    /// Makes a key of its 32 bytes; nil for any other count. Whether they are of use shows when something is agreed on.
    public init?(_ bytes: Bytes) {
        guard bytes.count == Sodium.keyLength else { return nil }
        self.bytes = bytes
    }

    /// Reads the text form, 43 characters of base64url without padding, or 64 hexadecimal digits.
    public init?(_ text: String) {
        let read = Secret(count: Sodium.keyLength)
        guard KeyText.read(text, into: read) else { return nil }
        bytes = unsafe Bytes(copying: UnsafeRawBufferPointer(start: read.pointer, count: read.count))
    }

    init(of secret: borrowing Secret) {
        bytes = Sodium.publicKey(of: secret)
    }
}

extension StaticPublicKey: Hashable {
    /// Whether both are the same key, found out in a time that does not depend on them.
    public static func == (left: StaticPublicKey, right: StaticPublicKey) -> Bool {
        unsafe left.bytes.withUnsafeBytes { left in
            unsafe right.bytes.withUnsafeBytes { right in
                unsafe sodium_memcmp(left.baseAddress, right.baseAddress, Sodium.keyLength) == 0
            }
        }
    }

    /// Feeds the key to `hasher`.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(bytes)
    }
}

extension StaticPublicKey: CustomStringConvertible {
    /// The text form: 43 characters of base64url without padding.
    public var description: String { unsafe bytes.withUnsafeBytes { unsafe KeyText.write($0) } }
}
