/// Says whose batch is sealed and handed down next.
///
/// Numbers are given when a batch is sealed, and a message that arrives 1,024 numbers late ends the session. So what is
/// sealed must not wait behind what is sealed later: of each delivery one batch at a time waits for the path below, and one
/// that waits is overtaken by no more than half a window of others. Control still passes bulk that waits (R22).
struct SendTurns {
    struct Lanes: OptionSet {
        let rawValue: UInt8

        static let control = Lanes(rawValue: 1 << 0)
        static let bulk = Lanes(rawValue: 1 << 1)
        static let unreliable = Lanes(rawValue: 1 << 2)
    }

    struct Batch {
        let id: UInt64
        let lanes: Lanes
        let count: Int
    }

    /// How far numbers may run ahead of a batch that has not been handed down.
    static let reach = ReplayWindow.size / 2

    private var active: [(batch: Batch, start: UInt64)] = []
    private var waiting: [Batch] = []
    /// How many messages have had their turn.
    private var given: UInt64 = 0
    private var nextID: UInt64 = 0

    /// Asks for a turn.
    ///
    /// - Returns: the batch, and whether it is its turn at once.
    mutating func enter(_ lanes: Lanes, count: Int) -> (batch: Batch, isTurn: Bool) {
        nextID += 1
        let batch = Batch(id: nextID, lanes: lanes, count: count)
        waiting.append(batch)
        return (batch, promote().contains(batch.id))
    }

    /// A batch was handed down, or will not be: its turn, or its wait for one, is over.
    ///
    /// - Returns: the batches whose turn it is now.
    mutating func leave(_ id: UInt64) -> [UInt64] {
        active.removeAll { $0.batch.id == id }
        waiting.removeAll { $0.id == id }
        return promote()
    }

    private mutating func promote() -> [UInt64] {
        var promoted: [UInt64] = []
        var taken = active.reduce(into: Lanes()) { $0.formUnion($1.batch.lanes) }
        var index = 0
        while index < waiting.count {
            let batch = waiting[index]
            // Whoever waits for the reach lets nobody pass, since it would wait for ever.
            if taken.isDisjoint(with: batch.lanes), !isInReach(batch) { break }
            if taken.isDisjoint(with: batch.lanes) {
                waiting.remove(at: index)
                active.append((batch, given))
                given += UInt64(batch.count)
                promoted.append(batch.id)
            } else {
                index += 1
            }
            taken.formUnion(batch.lanes)
        }
        return promoted
    }

    private func isInReach(_ batch: Batch) -> Bool {
        guard let oldest = active.first?.start else { return true }
        return given + UInt64(batch.count) - oldest <= Self.reach
    }
}
