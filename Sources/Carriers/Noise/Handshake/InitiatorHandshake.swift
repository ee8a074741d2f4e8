public import TransportKit

/// The initiator's side of `Noise_IK_25519_ChaChaPoly_SHA256`: message 1 is written, message 2 is waited for.
///
/// No I/O and no clock. A message that is not the answer changes nothing, so that the wait can go on (R73).
public struct InitiatorHandshake: ~Copyable {
    /// What to send: 96 bytes and the payload.
    public let message1: Bytes

    private let key: StaticPrivateKey
    private let peer: StaticPublicKey
    private let ephemeral: Secret
    private let state: SymmetricState
    private var isDone = false

    /// Starts a handshake with keys of its own.
    ///
    /// - Parameters:
    ///   - key: who this end is.
    ///   - peer: who must answer.
    ///   - prologue: what both ends must agree on.
    ///   - payload: travels in message 1, readable by the peer alone. Somebody who recorded message 1 can send it again.
    /// - Throws: ``NoiseError/badKey`` where nothing can be agreed on with the peer's key.
    public init(
        key: StaticPrivateKey, peer: StaticPublicKey, prologue: NoisePrologue = .session, payload: Bytes = Bytes()
    ) throws(NoiseError) {
        try self.init(
            key: key, peer: peer, prologue: prologue, payload: payload, ephemeral: HandshakeMessage.ephemeral())
    }

    init(
        key: StaticPrivateKey, peer: StaticPublicKey, prologue: NoisePrologue, payload: Bytes,
        ephemeral: consuming Secret
    ) throws(NoiseError) {
        try HandshakeMessage.check(
            HandshakeMessage.firstLength + payload.count, least: HandshakeMessage.firstLength)
        var state = SymmetricState(prologue: prologue, responder: peer)
        var message = Bytes(capacity: HandshakeMessage.firstLength + payload.count)
        let own = Sodium.publicKey(of: ephemeral)
        message.append(contentsOf: own)
        state.mixHash(own)
        try state.mixKey(ephemeral, peer.bytes)
        state.seal(key.publicKey.bytes, into: &message)
        try state.mixKey(key.secret, peer.bytes)
        state.seal(payload, into: &message)
        self.key = key
        self.peer = peer
        self.ephemeral = ephemeral
        self.state = state
        message1 = message
    }

    /// Reads message 2 and becomes a session.
    ///
    /// - Throws: what is wrong with the message, after which another one may be read; ``NoiseError/wrongState`` where this
    ///   handshake has become a session before.
    public mutating func finish(reading message2: Bytes) throws(NoiseError) -> NoiseSession {
        guard !isDone else { throw .wrongState }
        try HandshakeMessage.check(message2.count, least: HandshakeMessage.secondLength)
        var attempt = state.copy()
        let theirs = message2.prefix(Sodium.keyLength)
        attempt.mixHash(theirs)
        try attempt.mixKey(ephemeral, theirs)
        try attempt.mixKey(key.secret, theirs)
        let payload = try attempt.open(message2.dropFirst(Sodium.keyLength))
        isDone = true
        return NoiseSession(attempt, isInitiator: true, peer: peer, payload: payload)
    }
}
