internal import TransportKit

/// The SymmetricState of the Noise Protocol Framework (rev 34, §5.2), with its CipherState.
struct SymmetricState: ~Copyable {
    /// The two keys that a handshake ends with, the initiator's first.
    struct Keys: ~Copyable {
        let initiator = Secret(count: Sodium.keyLength)
        let responder = Secret(count: Sodium.keyLength)
    }

    /// 32 bytes long, so it is the first hash itself.
    private static let protocolName = Bytes("Noise_IK_25519_ChaChaPoly_SHA256")

    private let chainingKey: Secret
    private let hash: Secret
    private let key: Secret
    /// The number of the next text that is sealed or opened with `key`.
    private var number: UInt64 = 0

    /// Starts a handshake with the given responder.
    init(prologue: NoisePrologue, responder: StaticPublicKey) {
        let first = Secret(count: Sodium.keyLength)
        unsafe Self.protocolName.withUnsafeBytes { unsafe first.fill(from: $0) }
        hash = first.copy()
        chainingKey = first
        key = Secret(count: Sodium.keyLength)
        mixHash(prologue.bytes(responder: responder))
        mixHash(responder.bytes)
    }

    private init(copying state: borrowing SymmetricState) {
        chainingKey = state.chainingKey.copy()
        hash = state.hash.copy()
        key = state.key.copy()
        number = state.number
    }

    /// A second state, for an attempt that may fail.
    func copy() -> SymmetricState { SymmetricState(copying: self) }

    func mixHash(_ bytes: Bytes) {
        Sodium.mixHash(hash, with: bytes)
    }

    /// MixKey(DH(own, peer)).
    mutating func mixKey(_ own: borrowing Secret, _ peer: Bytes) throws(NoiseError) {
        let shared = Secret(count: Sodium.keyLength)
        guard Sodium.agree(own, with: peer, into: shared) else { throw .badKey }
        Sodium.mix(shared, into: chainingKey, key)
        number = 0
    }

    /// EncryptAndHash: puts the sealed text after `message`.
    mutating func seal(_ plaintext: Bytes, into message: inout Bytes) {
        let sealed = unsafe Bytes(unsafeUninitializedCapacity: plaintext.count + Sodium.tagLength) { room in
            unsafe plaintext.withUnsafeBytes { plaintext in
                unsafe withHash { hash in
                    unsafe Sodium.seal(plaintext, into: room, associatedData: hash, number: number, key: key)
                }
            }
            return room.count
        }
        number += 1
        mixHash(sealed)
        message.append(contentsOf: sealed)
    }

    /// DecryptAndHash. Where it fails nothing has changed.
    mutating func open(_ sealed: Bytes) throws(NoiseError) -> Bytes {
        guard sealed.count >= Sodium.tagLength else { throw .messageTooShort }
        var isAuthentic = false
        let plaintext = unsafe Bytes(unsafeUninitializedCapacity: sealed.count - Sodium.tagLength) { room in
            unsafe sealed.withUnsafeBytes { sealed in
                unsafe withHash { hash in
                    isAuthentic = unsafe Sodium.open(
                        sealed, into: room, associatedData: hash, number: number, key: key)
                }
            }
            return isAuthentic ? room.count : 0
        }
        guard isAuthentic else { throw .authentication }
        number += 1
        mixHash(sealed)
        return plaintext
    }

    /// The keys of the two directions.
    func split() -> Keys {
        let keys = Keys()
        Sodium.derive(from: chainingKey, into: keys.initiator, keys.responder)
        return keys
    }

    /// What both ends have seen, and nobody else can have.
    var handshakeHash: Bytes { unsafe withHash { unsafe Bytes(copying: $0) } }

    private func withHash<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        unsafe body(UnsafeRawBufferPointer(start: hash.pointer, count: hash.count))
    }
}
