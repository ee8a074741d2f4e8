import Testing
import TransportKitTesting

@testable import NoiseCarrier

/// Who may seal and hand down, so that nothing that is sealed waits behind what is sealed later.
@Suite struct SendTurnsTests {
    @Test func `Of one delivery one batch at a time is on its way, and control passes bulk that waits`() {
        var turns = SendTurns()
        let bulk = turns.enter(.bulk, count: 1)
        let moreBulk = turns.enter(.bulk, count: 1)
        let control = turns.enter(.control, count: 1)
        #expect([bulk.isTurn, moreBulk.isTurn, control.isTurn] == [true, false, true])
        #expect(turns.leave(control.batch.id) == [])
        #expect(turns.leave(bulk.batch.id) == [moreBulk.batch.id])
    }

    @Test func `A batch of several deliveries waits for all of them, and whoever comes later waits for it`() {
        var turns = SendTurns()
        let bulk = turns.enter(.bulk, count: 1)
        let both = turns.enter([.control, .bulk], count: 2)
        let control = turns.enter(.control, count: 1)
        #expect([both.isTurn, control.isTurn] == [false, false])
        #expect(turns.leave(bulk.batch.id) == [both.batch.id])
        #expect(turns.leave(both.batch.id) == [control.batch.id])
    }

    @Test func `A batch that waits for the path is overtaken by half a window at most`() {
        // R64
        var turns = SendTurns()
        let stuck = turns.enter(.bulk, count: 1)
        var overtaking = 0
        while overtaking < 2000 {
            let control = turns.enter(.control, count: 1)
            guard control.isTurn else { break }
            _ = turns.leave(control.batch.id)
            overtaking += 1
        }
        #expect(overtaking == 511)
        // Not even somebody who would fit passes the one that waits for it.
        let datagram = turns.enter(.unreliable, count: 1)
        #expect(!datagram.isTurn)
        #expect(turns.leave(stuck.batch.id).count == 2)
    }

    @Test func `A batch larger than the reach goes alone`() {
        var turns = SendTurns()
        let first = turns.enter(.control, count: 1)
        let large = turns.enter(.bulk, count: 5000)
        #expect(!large.isTurn)
        #expect(turns.leave(first.batch.id) == [large.batch.id])
        #expect(!turns.enter(.control, count: 1).isTurn)
    }

    @Test func `A batch that was given up holds nobody up`() {
        var turns = SendTurns()
        let first = turns.enter(.control, count: 1)
        let second = turns.enter(.control, count: 1)
        let third = turns.enter(.control, count: 1)
        #expect(turns.leave(second.batch.id) == [])
        #expect(turns.leave(first.batch.id) == [third.batch.id])
    }

    @Test func `Whatever is sent, everybody gets a turn, and nothing is overtaken by more than the reach`() {
        var random = SeededGenerator.announced()
        let kinds: [SendTurns.Lanes] = [.control, .bulk, .unreliable, [.control, .bulk], [.control, .unreliable]]
        for _ in 0..<50 {
            var turns = SendTurns()
            var active: [(id: UInt64, lanes: SendTurns.Lanes, start: Int)] = []
            var waiting: [UInt64: (lanes: SendTurns.Lanes, count: Int)] = [:]
            var given = 0
            func begin(_ id: UInt64) {
                guard let batch = waiting.removeValue(forKey: id) else {
                    Issue.record("a turn for nobody")
                    return
                }
                #expect(active.allSatisfy { $0.lanes.isDisjoint(with: batch.lanes) })
                if let oldest = active.map(\.start).min() { #expect(given + batch.count - oldest <= 512) }
                active.append((id, batch.lanes, given))
                given += batch.count
            }
            for _ in 0..<400 {
                if Bool.random(using: &random), let lanes = kinds.randomElement(using: &random) {
                    let count = Int.random(in: 1...200, using: &random)
                    let (batch, isTurn) = turns.enter(lanes, count: count)
                    waiting[batch.id] = (lanes, count)
                    if isTurn { begin(batch.id) }
                } else if let ended = active.randomElement(using: &random) {
                    active.removeAll { $0.id == ended.id }
                    turns.leave(ended.id).forEach(begin)
                } else if let given = waiting.keys.sorted().randomElement(using: &random) {
                    waiting[given] = nil
                    turns.leave(given).forEach(begin)
                }
            }
            while let ended = active.popLast() { turns.leave(ended.id).forEach(begin) }
            #expect(waiting.isEmpty)
        }
    }
}
