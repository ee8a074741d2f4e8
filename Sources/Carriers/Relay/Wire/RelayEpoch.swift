package import TransportKit

/// The hours by which handles change.
package enum RelayEpoch {
    /// How long an epoch is, in seconds.
    package static let seconds: Int64 = 3600
    /// The greatest epoch that every implementation can hold.
    package static let greatest: Int64 = (1 << 53) - 1

    /// The epoch of a point of the wall clock; before 1970 it is negative.
    package static func current(at wall: WallTime) -> Int64 {
        let (quotient, remainder) = wall.seconds.quotientAndRemainder(dividingBy: seconds)
        return remainder < 0 ? quotient - 1 : quotient
    }

    /// Reads an epoch: decimal digits and nothing else. An empty text is none, and not the first.
    package static func read(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let epoch = Int64(text),
            epoch <= greatest
        else { return nil }
        return epoch
    }
}
