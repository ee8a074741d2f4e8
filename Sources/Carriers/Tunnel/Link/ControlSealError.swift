package import NoiseCarrier

/// Why a sealed control message breaks the wire of the door.
package enum ControlSealError: Error, Sendable, Hashable {
    /// It does not have the next number, so one before it is lost, or it came twice.
    case gap(expected: UInt64, found: UInt64)
    /// It was not sealed by the other end of the link.
    case sealed(NoiseError)
    /// What was sealed is none.
    case wire(DoorWireError)
}

extension ControlSealError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .gap(let expected, let found): "the control message \(expected) was expected, and \(found) came"
        case .sealed(let error): "a control message was not opened: \(error)"
        case .wire(let error): "\(error)"
        }
    }
}
