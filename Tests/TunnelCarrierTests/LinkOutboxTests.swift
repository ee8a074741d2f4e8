import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// What a link sends: its own messages first, then sessions in turn.
@Suite struct LinkOutboxTests {
    private static let window = DoorLimits.defaultWindow

    private static func lane(_ key: Int) -> SendLane {
        SendLane(session: TunnelSessionID(rawValue: UInt64(key)), window: window)
    }

    private static func frame(_ kind: TunnelFrame.Kind, _ key: Int, bytes: Int) -> TunnelFrame {
        TunnelFrame(
            kind, session: TunnelSessionID(rawValue: UInt64(key)), payload: Bytes(repeating: 7, count: bytes))
    }

    private static func key(of message: Message) -> Int? {
        guard case .frame(let frame) = try? DoorMessage.decode(message.payload, .clientToDoor) else { return nil }
        return Int(frame.session.rawValue)
    }

    @Test func `What the link says itself goes before any frame`() {
        var outbox = LinkOutbox<Int>()
        outbox.open(1, Self.lane(1))
        #expect(!outbox.isReady)
        outbox.put(Self.frame(.control, 1, bytes: 10), of: 1)
        outbox.say([1, 2, 3])
        #expect(outbox.isReady && outbox.ownBytes == 67)
        let batch = outbox.next()
        #expect(batch.map(\.payload.count) == [3, 19])
        #expect(outbox.ownBytes == 0 && !outbox.isReady)
        let empty = outbox.next()
        #expect(empty.isEmpty)
    }

    @Test func `A frame is sent as its kind says`() {
        var outbox = LinkOutbox<Int>()
        outbox.open(1, Self.lane(1))
        for kind in [TunnelFrame.Kind.bulk, .unreliable, .control] { outbox.put(Self.frame(kind, 1, bytes: 9), of: 1) }
        let batch = outbox.next()
        #expect(batch.map(\.delivery) == [.control, .unreliable, .bulk])
    }

    @Test func `A session without credit keeps no other from its turn, and a heavy one takes no more than a turn`() {
        var outbox = LinkOutbox<Int>()
        for key in 1...3 { outbox.open(key, Self.lane(key)) }
        // The first uses its window up.
        for _ in 0..<12 { outbox.put(Self.frame(.bulk, 1, bytes: 30_000), of: 1) }
        while outbox.isReady { _ = outbox.next() }
        for _ in 0..<100 { outbox.put(Self.frame(.bulk, 2, bytes: 1_000), of: 2) }
        for _ in 0..<100 { outbox.put(Self.frame(.control, 3, bytes: 50), of: 3) }
        let batch = outbox.next(upTo: 20_000)
        let keys = batch.compactMap(Self.key)
        #expect(!keys.contains(1))
        #expect(keys.prefix { $0 == 2 }.count <= 9)
        #expect(keys.filter { $0 == 3 }.count == 100)
        outbox.credit(2 * UInt64(Self.window), of: 1)
        var rest: [Int] = []
        while outbox.isReady { rest += outbox.next().compactMap(Self.key) }
        #expect(rest.filter { $0 == 1 }.count == 5)
    }

    @Test func `What a batch took is told once`() {
        var outbox = LinkOutbox<Int>()
        outbox.open(1, Self.lane(1))
        outbox.put(Self.frame(.control, 1, bytes: 36), of: 1)
        outbox.put(Self.frame(.unreliable, 1, bytes: 36), of: 1)
        _ = outbox.next()
        let taken = outbox.takeTaken()
        #expect(taken.map(\.key) == [1] && taken.map(\.cost) == [100])
        let more = outbox.takeTaken()
        #expect(more.isEmpty)
    }

    @Test func `A session whose end has gone is forgotten, and a removed one leaves nothing`() {
        var outbox = LinkOutbox<Int>()
        for key in 1...2 { outbox.open(key, Self.lane(key)) }
        outbox.put(Self.frame(.control, 1, bytes: 10), of: 1)
        outbox.put(Self.frame(.control, 2, bytes: 10), of: 2)
        outbox.remove(2)
        outbox.finish(1)
        let batch = outbox.next()
        #expect(batch.compactMap(Self.key) == [1, 1])
        #expect(outbox.count == 0 && !outbox.isReady)
        // The same name again is another session.
        outbox.open(1, Self.lane(1))
        #expect(!outbox.hasSent(1))
        outbox.put(Self.frame(.bulk, 1, bytes: 10), of: 1)
        let again = outbox.next()
        #expect(again.count == 1 && outbox.hasSent(1))
    }

    @Test func `2,000 random events lose no reliable frame, change no order and leave nothing behind`() {
        var random = SeededGenerator.announced()
        var outbox = LinkOutbox<Int>()
        var (put, sent) = ([Int: [Int]](), [Int: [Int]]())
        var spent: [Int: UInt64] = [:]
        for key in 0..<5 { outbox.open(key, Self.lane(key)) }
        func take() {
            for message in outbox.next(upTo: .random(in: 1...70_000, using: &random)) {
                guard let key = Self.key(of: message), message.delivery == .bulk else { continue }
                sent[key, default: []].append(message.payload.count - 9)
            }
            for taken in outbox.takeTaken() { spent[taken.key, default: 0] += taken.cost }
        }
        for _ in 0..<2_000 {
            let key = Int.random(in: 0..<5, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let bytes = Int.random(in: 1...20_000, using: &random)
                outbox.put(Self.frame(.bulk, key, bytes: bytes), of: key)
                put[key, default: []].append(bytes)
            case 2: outbox.credit((spent[key] ?? 0) + .random(in: 0...UInt64(Self.window), using: &random), of: key)
            case _: take()
            }
        }
        for key in 0..<5 {
            outbox.credit(Varint.max, of: key)
            outbox.finish(key)
        }
        while outbox.isReady { take() }
        #expect(put == sent)
        #expect(outbox.count == 0)
        for (key, sizes) in put { #expect(spent[key] == sizes.reduce(0) { $0 + UInt64($1) + 64 }) }
    }
}
