internal import TransportKit

/// The words of the relay's wire (part 2.1), for both ends of it.
package enum RelayWire {
    /// What the relay says to a peer when its view of the room has changed.
    package enum Word: String, Sendable, Hashable {
        /// Somebody of the other role is in the room.
        case ready
        /// The last one of the other role has left it.
        case gone
    }

    /// Who somebody is in a room.
    package enum Role: String, Sendable, Hashable, CaseIterable {
        /// The uplink, of which a room has one.
        case box
        /// One of the streams.
        case app
    }

    /// The longest frame.
    package static let frameLimit = 65_536

    /// Whether it is the claim of a box, which the relay consumes: `deadman` and 32 hexadecimal digits.
    package static func isClaim(_ text: String) -> Bool {
        guard text.hasPrefix("deadman ") else { return false }
        return RelayHandle(String(text.dropFirst("deadman ".count))) != nil
    }
}
