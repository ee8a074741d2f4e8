internal import TransportKit

/// The frames of one session that go one after the other, and by how many others the first of them has been passed.
struct FrameQueue: Sendable {
    /// The three queues of a session.
    enum Name: Int {
        case control
        case unreliable
        case bulk
    }

    /// A count for each queue of a session.
    typealias Marks = InlineArray<3, UInt64>

    private struct Waiting: Sendable {
        var frame: TunnelFrame
        /// How many frames had been put in each queue when this one was.
        let marks: Marks
    }

    private var waiting = Fifo<Waiting>()
    /// How many frames have been put, and how many have gone.
    private(set) var put: UInt64 = 0
    private(set) var gone: UInt64 = 0
    /// How many bytes wait.
    private(set) var bytes = 0

    var isEmpty: Bool { waiting.isEmpty }
    var count: Int { waiting.count }
    var first: TunnelFrame? { waiting.first?.frame }

    mutating func append(_ frame: TunnelFrame, _ marks: Marks) {
        put += 1
        bytes += frame.payload.count
        waiting.append(Waiting(frame: frame, marks: marks))
    }

    mutating func popFirst() -> TunnelFrame? {
        guard let first = waiting.popFirst() else { return nil }
        gone += 1
        bytes -= first.frame.payload.count
        return first.frame
    }

    mutating func removeAll() {
        waiting.removeAll()
        gone = put
        bytes = 0
    }

    /// Whether the next frame of another queue may go before the first of this one.
    ///
    /// - Parameters:
    ///   - queue: the other queue.
    ///   - gone: how many frames of each queue have gone.
    func letsPass(_ queue: Name, _ gone: Marks) -> Bool {
        guard let marks = waiting.first?.marks else { return true }
        // What was put earlier than the first one passes nothing.
        guard gone[queue.rawValue] >= marks[queue.rawValue] else { return true }
        var passed: UInt64 = 0
        for index in gone.indices where gone[index] > marks[index] { passed += gone[index] - marks[index] }
        return passed < UInt64(DoorLimits.overtaking)
    }
}
