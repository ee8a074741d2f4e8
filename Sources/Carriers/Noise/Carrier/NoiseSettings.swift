public import TransportKit

/// What the two ends of a session may be told. Both must be told the same prologue.
public struct NoiseSettings: Sendable {
    /// What becomes of a reliable message that does not belong to the session.
    public enum ForeignMessages: Sendable, Hashable {
        /// It ends the session with 1002: on a path of its own it shows that somebody tampered (R65).
        case endTheSession
        /// It is dropped and counted: on a path that several sessions share it is somebody else's (R74).
        case areDropped
    }

    /// What both ends must agree on before they say anything.
    public var prologue = NoisePrologue.session
    /// Travels in message 1, and only the peer can read it: a pairing code, for example. Asked for anew for each handshake.
    public var payload: @Sendable () -> Bytes = { Bytes() }
    /// What becomes of a reliable message that does not belong to the session. One that came as a datagram is dropped.
    public var foreignMessages = ForeignMessages.endTheSession
    /// How long the initiator waits for message 2 (R72).
    public var deadline = Duration.seconds(12)
    /// How long it waits in the first handshake after a wake (R72).
    public var deadlineAfterWake = Duration.seconds(3)
    /// How long it waits before the next handshake: a peer that refuses it stays silent (R72).
    public var retry = Backoff(base: .seconds(3), cap: .seconds(60))
    /// How long a responder waits for a message 1 that it admits; long enough for an initiator's second.
    public var patience = Duration.seconds(30)

    /// Makes the default settings.
    public init() {}
}
