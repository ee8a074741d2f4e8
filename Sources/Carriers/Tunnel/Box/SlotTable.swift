internal import TransportKit

/// The sessions of a box on one link: one slot for each device, and those that have not proven themselves yet (R134).
///
/// A session begins without a slot: its first message may have been recorded and sent again. It takes the slot with the first
/// message after the handshake that authenticates, and whoever had the slot is ended (R83). No I/O and no clock.
struct SlotTable {
    /// How many sessions of one device, and of all, may be without a slot at once.
    static let unprovenOfDevice = 4
    static let unprovenLimit = 64
    /// How long a session may be without.
    static let patience = Duration.seconds(10)

    private struct Unproven {
        let address: TunnelAddress
        let until: Instant
        var wasAnswered = false
    }

    /// A session whose time is over.
    struct Expired: Equatable {
        let address: TunnelAddress
        /// Whether its handshake was answered. If not, it is let go without a word: a stranger hears nothing (R133).
        let wasAnswered: Bool
    }

    private var slots: [DeviceID: TunnelAddress] = [:]
    /// In the order in which they began, and so of their deadlines.
    private var unproven: [Unproven] = []

    /// How many devices have a session.
    var count: Int { slots.count }

    /// When ``passed(now:)`` has something to do.
    var deadline: Instant? { unproven.first?.until }

    /// A session begins.
    ///
    /// - Returns: whether there is room for it.
    mutating func began(_ address: TunnelAddress, now: Instant) -> Bool {
        let ofDevice = unproven.count { $0.address.device == address.device }
        guard unproven.count < Self.unprovenLimit, ofDevice < Self.unprovenOfDevice else { return false }
        unproven.append(Unproven(address: address, until: now + Self.patience))
        return true
    }

    /// Its handshake is answered, for a device that is admitted.
    mutating func answered(_ address: TunnelAddress) {
        guard let index = unproven.firstIndex(where: { $0.address == address }) else { return }
        unproven[index].wasAnswered = true
    }

    /// What the device said next has authenticated: the session takes the slot.
    ///
    /// - Returns: nil where it is not known any more; else the session that had the slot before and is to be ended, if any.
    mutating func proved(_ address: TunnelAddress) -> TunnelAddress?? {
        guard let device = address.device, let index = unproven.firstIndex(where: { $0.address == address }) else {
            return nil
        }
        unproven.remove(at: index)
        return .some(slots.updateValue(address, forKey: device))
    }

    /// A session is over, whoever ended it. What happens to one that was replaced does not touch its successor.
    mutating func ended(_ address: TunnelAddress) {
        unproven.removeAll { $0.address == address }
        if let device = address.device, slots[device] == address { slots[device] = nil }
    }

    /// The sessions of a device, with a slot or without.
    func sessions(of device: DeviceID) -> [TunnelAddress] {
        let waiting = unproven.map(\.address).filter { $0.device == device }
        return (slots[device].map { [$0] } ?? []) + waiting
    }

    /// Takes out the sessions whose time to prove themselves is over.
    mutating func passed(now: Instant) -> [Expired] {
        let late = unproven.prefix { $0.until <= now }
        unproven.removeFirst(late.count)
        return late.map { Expired(address: $0.address, wasAnswered: $0.wasAnswered) }
    }
}
