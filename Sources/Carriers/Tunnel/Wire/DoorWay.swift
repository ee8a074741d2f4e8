package import NoiseCarrier

/// Who says something to whom. What may be said, and in what form, depends on it.
package enum DoorWay: String, Sendable, CaseIterable {
    case clientToDoor
    case doorToClient
    case boxToDoor
    case doorToBox

    /// Whether it is the leg between box and door, where a session is named with its device.
    package var isBoxLeg: Bool {
        switch self {
        case .clientToDoor, .doorToClient: false
        case .boxToDoor, .doorToBox: true
        }
    }

    /// What the handshake of the leg begins with: one word for each, so that what was recorded on one is nothing on the other.
    package var prologue: NoisePrologue {
        .label(isBoxLeg ? "transportkit.box.v1:" : "transportkit.app.v1:")
    }

    /// The target of the leg at the door, where nothing else is set.
    package var target: String { isBoxLeg ? "/v1/box" : "/v1/app" }
}
