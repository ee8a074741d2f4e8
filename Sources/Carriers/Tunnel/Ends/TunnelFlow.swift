internal import TransportKit

/// One session at an end of a link: what has arrived for whoever holds it, and what waits until it may be sent.
struct TunnelFlow {
    /// How many unreliable messages may wait to be taken.
    static let unreliableLimit = 256

    private(set) var credit: ReceiveCredit
    private(set) var arrived: [Message] = []
    /// When the first message came.
    private var firstArrival: Instant?
    private var heldCost: UInt64 = 0
    private var unreliableCount = 0
    /// Bulk and unreliable frames from before the door has said that they may be sent: they could overtake what must come
    /// before them.
    private var early: [TunnelFrame] = []

    init(window: UInt32) {
        credit = ReceiveCredit(window: window)
    }

    /// A frame has arrived.
    ///
    /// - Returns: false where it is beyond the credit; nil where it is unreliable and dropped, because too many wait.
    mutating func arrived(_ frame: TunnelFrame, now: Instant) -> Bool? {
        guard credit.arrived(frame.cost) else { return false }
        firstArrival = firstArrival ?? now
        if frame.kind == .unreliable {
            guard unreliableCount < Self.unreliableLimit else { return nil }
            unreliableCount += 1
        }
        heldCost += frame.cost
        arrived.append(Message(frame.payload, delivery: frame.kind.delivery))
        return true
    }

    /// For how long the session has carried.
    func carried(now: Instant) -> Duration { firstArrival.map { now - $0 } ?? .zero }

    /// Takes what has arrived.
    ///
    /// - Returns: the messages, and the credit to announce if it is time for it.
    mutating func take() -> (messages: [Message], total: UInt64?) {
        let messages = arrived
        let cost = heldCost
        arrived = []
        heldCost = 0
        unreliableCount = 0
        return (messages, cost > 0 ? credit.passedOn(cost) : nil)
    }

    /// Keeps a frame until it may be sent.
    ///
    /// - Returns: false where it is unreliable and dropped.
    mutating func hold(_ frame: TunnelFrame) -> Bool {
        if frame.kind == .unreliable, early.count >= Self.unreliableLimit { return false }
        early.append(frame)
        return true
    }

    /// How much is kept: bulk, or all else.
    func earlyCost(bulk: Bool) -> UInt64 {
        early.filter { ($0.kind == .bulk) == bulk }.reduce(0) { $0 + UInt64($1.payload.count + DoorLimits.frameCost) }
    }

    /// Takes what was kept: it may be sent now.
    mutating func release() -> [TunnelFrame] {
        defer { early = [] }
        return early
    }
}
