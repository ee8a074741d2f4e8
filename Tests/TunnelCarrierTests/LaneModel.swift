import TransportKit

@testable import TunnelCarrier

/// What a lane does, written down the slow way: a list of everything that waits, in the order in which it was put.
struct LaneModel {
    struct Record {
        let number: Int
        let frame: TunnelFrame
        /// How many frames that were put later have gone before it.
        var passed = 0
    }

    let window: UInt64
    var granted: UInt64
    var spent: UInt64 = 0
    var waiting: [Record] = []
    var count = 0
    var isFinishing = false
    var isEnded = false

    init(window: UInt32) {
        self.window = UInt64(window)
        granted = UInt64(window)
    }

    /// Whether the frame is kept.
    mutating func put(_ frame: TunnelFrame) -> Bool {
        if frame.kind == .unreliable {
            let others = waiting.filter { $0.frame.kind == .unreliable }
            let bytes = others.reduce(0) { $0 + $1.frame.payload.count }
            guard others.count < SendLane.unreliableFrames, bytes < SendLane.unreliableBytes else { return false }
        }
        waiting.append(Record(number: count, frame: frame))
        count += 1
        return true
    }

    mutating func next() -> TunnelFrame? {
        let control = waiting.first { $0.frame.kind == .control || $0.frame.kind == .begin }
        let unreliable = waiting.first { $0.frame.kind == .unreliable }
        let bulk = waiting.first { $0.frame.kind == .bulk }
        let left = granted - spent
        if let control, mayPass(control), control.frame.cost <= left { return take(control) }
        if let unreliable, mayPass(unreliable) { return take(unreliable) }
        if let bulk, control.map({ !mayPass($0) }) ?? true, mayPass(bulk), bulk.frame.cost + window / 8 <= left {
            return take(bulk)
        }
        guard isFinishing, waiting.isEmpty, !isEnded else { return nil }
        isEnded = true
        return .end(session: TunnelSessionID(rawValue: 1))
    }

    private func mayPass(_ record: Record) -> Bool {
        waiting.allSatisfy { $0.number >= record.number || $0.passed < 256 }
    }

    private mutating func take(_ record: Record) -> TunnelFrame {
        waiting.removeAll { $0.number == record.number }
        for index in waiting.indices where waiting[index].number < record.number { waiting[index].passed += 1 }
        spent += record.frame.cost
        return record.frame
    }
}
