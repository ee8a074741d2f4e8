public import TransportKit

/// The responder's side of `Noise_IK_25519_ChaChaPoly_SHA256`: message 1 has been read, and says who sent it.
///
/// No I/O and no clock. Whoever recorded message 1 can send it again: only the first message that the session opens proves
/// that the peer is there.
public struct ResponderHandshake: ~Copyable {
    /// Who sent message 1, or once did.
    public let peer: StaticPublicKey
    /// What travelled in message 1.
    public let payload: Bytes

    private let theirs: Bytes
    private let state: SymmetricState

    /// Reads message 1.
    ///
    /// - Parameters:
    ///   - key: who this end is.
    ///   - prologue: what both ends must agree on.
    ///   - message1: what may be message 1.
    /// - Throws: why it is none; for a stranger's bytes ``NoiseError/authentication``.
    public init(
        key: StaticPrivateKey, prologue: NoisePrologue = .session, reading message1: Bytes
    ) throws(NoiseError) {
        try HandshakeMessage.check(message1.count, least: HandshakeMessage.firstLength)
        var state = SymmetricState(prologue: prologue, responder: key.publicKey)
        var rest = message1
        let theirs = rest.takeFirst(Sodium.keyLength)
        state.mixHash(theirs)
        try state.mixKey(key.secret, theirs)
        let sealedKey = rest.takeFirst(Sodium.keyLength + Sodium.tagLength)
        guard let peer = StaticPublicKey(try state.open(sealedKey)) else { throw .authentication }
        try state.mixKey(key.secret, peer.bytes)
        payload = try state.open(rest)
        self.peer = peer
        self.theirs = theirs
        self.state = state
    }

    /// Writes message 2 and becomes a session.
    ///
    /// It takes as long for a peer that is let in as for one that is not, if it is called before that is decided.
    ///
    /// - Parameter payload: travels in message 2, readable by the peer alone.
    public consuming func answer(payload: Bytes = Bytes()) throws(NoiseError) -> NoiseAnswer {
        try answer(payload: payload, ephemeral: HandshakeMessage.ephemeral())
    }

    consuming func answer(payload: Bytes, ephemeral: consuming Secret) throws(NoiseError) -> NoiseAnswer {
        try HandshakeMessage.check(
            HandshakeMessage.secondLength + payload.count, least: HandshakeMessage.secondLength)
        var state = self.state.copy()
        var message = Bytes(capacity: HandshakeMessage.secondLength + payload.count)
        let own = Sodium.publicKey(of: ephemeral)
        message.append(contentsOf: own)
        state.mixHash(own)
        try state.mixKey(ephemeral, theirs)
        try state.mixKey(ephemeral, peer.bytes)
        state.seal(payload, into: &message)
        return NoiseAnswer(
            message2: message,
            session: NoiseSession(state, isInitiator: false, peer: peer, payload: self.payload))
    }
}

/// What a responder says, and the session that begins with it.
public struct NoiseAnswer: ~Copyable, Sendable {
    /// What to send: 48 bytes and the payload.
    public let message2: Bytes
    /// Who it is for.
    public var peer: StaticPublicKey { session.peer }
    /// What travelled in message 1.
    public var payload: Bytes { session.payload }

    let session: NoiseSession

    /// Becomes the session.
    public consuming func begin() -> NoiseSession { session }
}
