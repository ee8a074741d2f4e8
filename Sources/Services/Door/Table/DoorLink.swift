internal import NoiseCarrier
internal import TransportKit
internal import TunnelCarrier

/// What both legs have in common: a handshake, a seal, what is to be sent, and sessions.
class DoorLink {
    enum Phase: Equatable {
        /// Nothing has come yet.
        case silent
        /// Message 1 was answered. Whoever has recorded it could have sent it.
        case greeted
        /// A sealed message has shown that the owner of the key is there.
        case proved
        case closed
    }

    let id: UInt64
    let address: AddressKey?
    var phase = Phase.silent
    /// When it is closed where nothing happens.
    var deadline: Instant?
    var seal: ControlSeal?
    var outbox = LinkOutbox<UInt64>()
    /// Whether a driver was told to send, and has not found the outbox empty since.
    var isAwake = false
    /// Whether more waits that the door said itself than may.
    var isOverrun = false
    /// The credit that a session begins with toward the other end of this link.
    var window: UInt32 = DoorLimits.defaultWindow
    var sessions: [SessionKey: DoorSession] = [:]
    var ended = EndedSessions<SessionKey>()
    /// Sessions that end once their queue here is empty.
    var endings: [DoorSession] = []
    /// Where it belongs, until it is closed.
    var home: DoorHome?

    init(id: UInt64, address: AddressKey?, deadline: Instant) {
        self.id = id
        self.address = address
        self.deadline = deadline
    }
}

/// The link of a client.
final class ClientLink: DoorLink {
    /// What lets the client in.
    enum Admission: Equatable {
        /// Nothing yet: no box is linked that could say.
        case waiting
        case listed
        case paired(PairingHash)
    }

    var admission = Admission.waiting
    /// The hash that it has shown.
    var pair: PairingHash?
    /// Until when it may wait for a box.
    var waitsUntil: Instant?
    /// Set with the first message.
    var device: DeviceID?
    /// Whether it was told that it is in.
    var hasEntered = false
}

/// The link of a box.
final class BoxLink: DoorLink {
    struct Expectation {
        let hash: PairingHash
        let until: Instant
    }

    var capabilities: BoxCapabilities?
    var roster: Set<DeviceID> = []
    /// The parts of a roster that is not whole.
    var parts: Set<DeviceID>?
    var expected: [Expectation] = []

    var takesTunnel: Bool { capabilities?.contains(BoxCapabilities.tunnel) ?? false }

    func expects(_ hash: PairingHash?) -> Bool { hash.map { hash in expected.contains { $0.hash == hash } } ?? false }
}
