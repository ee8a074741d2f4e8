internal import CSodium
internal import TransportKit

/// The primitives of libsodium that a session is made of, as the Noise Protocol Framework names them.
enum Sodium {
    /// How long keys, hashes and public keys are.
    static let keyLength = 32
    /// How much longer a sealed text is.
    static let tagLength = 16

    private static let isReady = sodium_init() >= 0

    /// Makes the library ready; the first call does.
    static func start() {
        precondition(isReady, "libsodium found no source of random numbers on this machine")
    }

    /// The public key of a private one.
    static func publicKey(of secret: borrowing Secret) -> Bytes {
        unsafe Bytes(unsafeUninitializedCapacity: keyLength) { room in
            guard let start = room.baseAddress else { return 0 }
            unsafe crypto_scalarmult_curve25519_base(start.assumingMemoryBound(to: UInt8.self), secret.pointer)
            return keyLength
        }
    }

    /// X25519 of a private and a public key.
    ///
    /// - Returns: false where the public key is none: the result would be all zeros (RFC 7748 §6.1).
    static func agree(_ secret: borrowing Secret, with key: Bytes, into shared: borrowing Secret) -> Bool {
        guard key.count == keyLength, shared.count == keyLength else { return false }
        return unsafe key.withUnsafeBytes { key in
            guard let start = key.baseAddress else { return false }
            return unsafe crypto_scalarmult_curve25519(
                shared.pointer, secret.pointer, start.assumingMemoryBound(to: UInt8.self)) == 0
        }
    }

    /// MixHash: `hash` becomes the hash of itself and `bytes`.
    static func mixHash(_ hash: borrowing Secret, with bytes: Bytes) {
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe tk_noise_mix_hash(hash.pointer, bytes.baseAddress, bytes.count)
        }
    }

    /// HKDF with two outputs; `first` may be the chaining key itself.
    static func derive(
        from chainingKey: borrowing Secret, into first: borrowing Secret, _ second: borrowing Secret
    ) {
        unsafe tk_noise_hkdf(first.pointer, second.pointer, chainingKey.pointer, nil, 0)
    }

    /// HKDF: the chaining key and `input` become the next chaining key and `second`.
    static func mix(_ input: borrowing Secret, into chainingKey: borrowing Secret, _ second: borrowing Secret) {
        unsafe tk_noise_hkdf(
            chainingKey.pointer, second.pointer, chainingKey.pointer, input.pointer, input.count)
    }

    /// Seals `plaintext` into `room`, which has the length of text and tag and may begin where the text does.
    static func seal(
        _ plaintext: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer,
        associatedData: UnsafeRawBufferPointer, number: UInt64, key: borrowing Secret
    ) {
        precondition(room.count == plaintext.count + tagLength, "a sealed text is longer by its tag")
        unsafe tk_noise_seal(
            room.baseAddress, plaintext.baseAddress, plaintext.count, associatedData.baseAddress, associatedData.count,
            number, key.pointer)
    }

    /// Opens `sealed`, which ends with its tag, into `room`, which may begin where the sealed text does.
    ///
    /// - Returns: whether it was sealed with this key, number and associated data. Where not, `room` holds nothing of use.
    static func open(
        _ sealed: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer,
        associatedData: UnsafeRawBufferPointer, number: UInt64, key: borrowing Secret
    ) -> Bool {
        precondition(sealed.count == room.count + tagLength, "an opened text is shorter by its tag")
        return unsafe tk_noise_open(
            room.baseAddress, sealed.baseAddress, room.count, associatedData.baseAddress, associatedData.count,
            number, key.pointer) == 0
    }
}
