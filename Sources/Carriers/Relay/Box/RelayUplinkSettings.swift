public import NoiseCarrier
public import TransportKit

/// What a box on the relay may be told. The defaults are those of the wire that is in use (part 2.3).
public struct RelayUplinkSettings: Sendable {
    /// The rules of the room.
    public var room = RelaySettings()
    /// What both ends of a session must agree on before they say anything.
    public var prologue = NoisePrologue.session
    /// How many sessions there are at most; one more evicts the oldest (R135).
    public var maxSessions = 4
    /// How long a dial may take.
    public var dialTimeout = Duration.seconds(15)
    /// How long a write may take.
    public var writeTimeout = Duration.seconds(10)
    /// How long the relay may be silent: three of its heartbeats.
    public var readTimeout = Duration.seconds(45)
    /// The last message to a session whose key was revoked, if the ends have agreed on one.
    public var terminate: Bytes?
    /// How many bytes may wait for whoever serves a session; who lets more wait loses it.
    public var receiveBufferBytes = 4 << 20
    /// How many bytes may wait for the relay before a session's `send` suspends.
    public var sendBufferBytes = 1 << 20

    /// Makes the default settings.
    public init() {}
}
