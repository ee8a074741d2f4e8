public import TransportKit

/// What a handshake ends with: a key for each direction, and what is known of the peer.
public struct NoiseSession: ~Copyable, Sendable {
    /// How much longer a sealed message is.
    public static var overhead: Int { TransportMessage.overhead }

    /// Who the other end is.
    public let peer: StaticPublicKey
    /// What travelled in the handshake message that was read.
    public let payload: Bytes
    /// Differs for every session, and is the same at both ends of one.
    public let handshakeHash: Bytes

    var sealer: NoiseSealer
    var opener: NoiseOpener

    init(_ state: borrowing SymmetricState, isInitiator: Bool, peer: StaticPublicKey, payload: Bytes) {
        let keys = state.split()
        handshakeHash = state.handshakeHash
        self.peer = peer
        self.payload = payload
        // Part 2.2: the initiator sends with the first key.
        if isInitiator {
            sealer = NoiseSealer(key: keys.initiator)
            opener = NoiseOpener(key: keys.responder)
        } else {
            sealer = NoiseSealer(key: keys.responder)
            opener = NoiseOpener(key: keys.initiator)
        }
    }

    /// Seals a message with the next number of this direction.
    ///
    /// - Parameters:
    ///   - plaintext: the message; the one copy that it takes on its way out is made as it is sealed.
    ///   - headroom: how many bytes to leave free in front of the sealed one.
    /// - Throws: ``NoiseError/closed`` once the keys are destroyed; ``NoiseError/nonceExhausted`` where no number is left.
    public mutating func seal(_ plaintext: Bytes, headroom: Int = 0) throws(NoiseError) -> Bytes {
        try sealer.seal(plaintext, headroom: headroom)
    }

    /// Opens a message, each once and in any order inside the replay window: in place where nobody else holds it, else in a
    /// copy. What is refused changes nothing (R67).
    ///
    /// - Throws: ``NoiseError/messageTooShort``, ``NoiseError/nonceExhausted`` for the reserved number,
    ///   ``NoiseError/replay``, ``NoiseError/authentication``, or ``NoiseError/closed`` once the keys are destroyed.
    public mutating func open(_ message: consuming Bytes) throws(NoiseError) -> Bytes {
        try opener.open(message)
    }

    /// Destroys the keys. Nothing is sealed or opened from now on.
    public mutating func close() {
        sealer.close()
        opener.close()
    }
}
