internal import TransportKit

/// Which epoch it is, as this machine sees it and the relay has corrected it (R105).
///
/// What a relay announces is a correction of the clock and never an order: one epoch either way, else it is ignored.
struct EpochClock: Sendable {
    private let farthest: Int64
    /// What is added to the machine's own epoch.
    private(set) var offset: Int64 = 0

    init(farthest: Int64) {
        self.farthest = farthest
    }

    func epoch(at wall: WallTime) -> Int64 { RelayEpoch.current(at: wall) + offset }

    /// The relay has said which epoch it is.
    mutating func announced(_ text: String, at wall: WallTime) {
        guard let epoch = RelayEpoch.read(text) else { return }
        let difference = epoch.subtractingReportingOverflow(RelayEpoch.current(at: wall))
        guard !difference.overflow, difference.partialValue.magnitude <= farthest.magnitude else { return }
        offset = difference.partialValue
    }
}
