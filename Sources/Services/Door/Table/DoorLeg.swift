internal import TunnelCarrier

/// Who is at the other end of a link.
enum DoorLeg: Sendable, Hashable {
    case app
    case box

    /// The direction of what the door reads.
    var reads: DoorWay {
        switch self {
        case .app: .clientToDoor
        case .box: .boxToDoor
        }
    }
}
