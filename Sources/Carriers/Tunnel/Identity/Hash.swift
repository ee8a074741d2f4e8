internal import CSodium
internal import TransportKit

/// SHA-256.
enum Hash {
    static let length = 32

    static func sha256(_ parts: Bytes...) -> Bytes {
        let text = parts.reduce(into: Bytes()) { $0.append(contentsOf: $1) }
        return unsafe Bytes(unsafeUninitializedCapacity: length) { room in
            unsafe text.withUnsafeBytes { text in
                guard let hash = room.baseAddress else { return 0 }
                _ = unsafe crypto_hash_sha256(
                    hash.assumingMemoryBound(to: UInt8.self), text.baseAddress?.assumingMemoryBound(to: UInt8.self),
                    UInt64(text.count))
                return length
            }
        }
    }
}
