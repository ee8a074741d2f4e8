/// The numbers that `docs/protocol.md` fixes for the wire of the door.
package enum DoorLimits {
    /// A message of either leg: what a box reads at most (R33).
    package static let message = 65_536
    /// What a session may say in one frame, so that it fits a message of either leg.
    package static let framePayload = 65_511
    /// The first message of a session's handshake.
    package static let firstPayload = 1_024
    /// A handshake message between a client or box and the door.
    package static let handshake = 4_096
    /// A control message, before it is sealed.
    package static let control = 40_960
    /// What sealing adds: number and tag.
    package static let seal = 24
    /// The keys of one message.
    package static let keys = 1_024
    /// How long a door may be asked to expect a pairing code.
    package static let pairingSeconds: ClosedRange<UInt32> = 1...600
    /// The credit that a session begins with, in each direction.
    package static let window: ClosedRange<UInt32> = 196_608...16_777_216
    /// The same where nothing else is set: 256 KiB.
    package static let defaultWindow: UInt32 = 262_144
    /// What a frame costs beside its payload, so that credit bounds memory for small frames too.
    package static let frameCost = 64
    /// How many frames of a session may pass another that waits.
    package static let overtaking = 256
}
