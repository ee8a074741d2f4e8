internal import TransportKit

/// When to join next, and the room of which epoch: what both roles make of dials that fail and of rooms that close
/// (part 2.1).
struct JoinPlan: Sendable {
    private let role: RelayWire.Role
    private let settings: RelaySettings
    private var clock: EpochClock
    private var backoff: Backoff
    private var corrections = 0

    init(_ role: RelayWire.Role, settings: RelaySettings) {
        self.role = role
        self.settings = settings
        clock = EpochClock(farthest: settings.farthestEpoch)
        backoff = settings.backoff
    }

    /// How many attempts have failed since a frame was delivered.
    var failures: Int { backoff.attempts }

    func epoch(at wall: WallTime) -> Int64 { clock.epoch(at: wall) }

    /// A dial has failed, or a connection has ended.
    ///
    /// - Parameters:
    ///   - lifetime: how long the connection stood.
    ///   - random: a number from 0 up to, but not including, 1.
    /// - Returns: how long to wait before the next dial.
    mutating func ended(
        _ close: Close, after lifetime: Duration = .zero, wall: WallTime, random: () -> Double
    ) -> Duration {
        if role == .box, lifetime >= settings.backoff.resetAfter { backoff.reset() }
        guard close.origin == .remote else {
            corrections = 0
            return backoff.failed(fraction: random())
        }
        switch close.code {
        case .displaced:
            clock.announced(close.reason, at: wall)
            guard corrections < settings.corrections else { return backoff.failed(fraction: random()) }
            corrections += 1
            return .zero
        case .epochTurned:
            clock.announced(close.reason, at: wall)
            corrections = 0
            if role == .box { backoff.reset() }
            return spread * min(max(random(), 0), 1)
        default:
            corrections = 0
            return backoff.failed(fraction: random())
        }
    }

    private var spread: Duration {
        if let spread = settings.turnSpread { return spread }
        return switch role {
        case .app: .seconds(3)
        case .box: .seconds(5)
        }
    }

    /// The relay has said a word: the room is the right one.
    mutating func joined() {
        corrections = 0
    }

    /// A frame has been delivered. Nothing less starts the backoff over: a relay that accepts and then fails would be dialled
    /// at the shortest interval for ever (R103).
    mutating func delivered() {
        corrections = 0
        if role == .app { backoff.reset() }
    }

    /// The network is back (R61).
    mutating func woken() {
        corrections = 0
        backoff.reset()
    }
}
