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
    private var unreliable = (count: 0, bytes: 0)
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
            guard unreliable.count < Self.unreliableLimit, unreliable.bytes < SendLane.unreliableBytes else {
                return nil
            }
            unreliable.count += 1
            unreliable.bytes += frame.payload.count
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
        unreliable = (0, 0)
        return (messages, cost > 0 ? credit.passedOn(cost) : nil)
    }

    /// Keeps a frame until it may be sent.
    ///
    /// - Returns: false where it is unreliable and dropped.
    mutating func hold(_ frame: TunnelFrame) -> Bool {
        if frame.kind == .unreliable {
            guard early.count < Self.unreliableLimit, earlyCost(bulk: false) < SendLane.unreliableBytes else {
                return false
            }
        }
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
