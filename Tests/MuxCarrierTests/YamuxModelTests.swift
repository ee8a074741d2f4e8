import Glibc
import Testing
import TransportKit
import TransportKitTesting

@testable import MuxCarrier

/// Two ends that do random things, with every byte cut anywhere on its way, against a plain record of what was written.
@Suite struct YamuxModelTests {
    private struct Direction {
        var written: [UInt8] = []
        var read = 0
        var isFinished = false
        var hasSeenEnd = false
    }

    private struct StreamRecord {
        /// By the end that writes: 0 dialled, 1 listens.
        var directions = [Direction(), Direction()]
        var isReset = false
        var isKnown = [false, false]
    }

    private struct World {
        var ends: [YamuxSession]
        var wire: [[UInt8]] = [[], []]
        var records: [UInt32: StreamRecord] = [:]
        var sequence: UInt8 = 0
    }

    @Test func `200 random conversations deliver what was written, in order, and end clean`() throws {
        var random = SeededGenerator.announced()
        for _ in 0..<200 { try play(&random) }
    }

    private func play(_ random: inout SeededGenerator) throws {
        let settings = { (isDialer: Bool) in
            YamuxSession.Settings(isDialer: isDialer, streamWindow: 300_000, laneWindow: 300_000, maxStreams: 5)
        }
        var world = World(ends: [YamuxSession(settings(true)), YamuxSession(settings(false))])
        for lane in [UInt32(1), 3] {
            world.records[lane] = StreamRecord()
            world.records[lane]?.isKnown = [true, true]
        }
        for _ in 0..<80 { try act(&world, &random) }
        // At the end both read whatever comes, until nothing moves any more.
        for _ in 0..<25 {
            for end in 0...1 {
                try carry(from: end, &world, .max, &random)
                for id in world.records.keys.sorted() { check(read: id, at: end, upTo: .max, &world) }
            }
        }
        for (id, record) in world.records where !record.isReset {
            for (writer, direction) in record.directions.enumerated() {
                #expect(direction.read == direction.written.count, "stream \(id) lost bytes of end \(writer)")
                #expect(direction.hasSeenEnd == direction.isFinished)
            }
        }
        for end in world.ends {
            #expect(end.isFlushed)
            #expect(end.queuedBytes == 0)
            #expect(
                end.streams.values.allSatisfy {
                    $0.receiveWindow + $0.unreturned == $0.window || $0.isOver || $0.hasReceivedEnd
                })
        }
    }

    private func act(_ world: inout World, _ random: inout SeededGenerator) throws {
        let end = Int.random(in: 0...1, using: &random)
        let id = world.records.keys.sorted().filter { world.records[$0]?.isKnown[end] == true }.randomElement(
            using: &random)
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
            guard world.ends[end].mayOpen else { return }
            let id = world.ends[end].open()
            world.records[id] = StreamRecord()
            world.records[id]?.isKnown[end] = true
        case 1..<5:
            guard let id, let record = world.records[id], !record.isReset, !record.directions[end].isFinished else {
                return
            }
            let count = [0, 1, 50, 300, 2000, 16_384, 20_000, 150_000].randomElement(using: &random) ?? 0
            let bytes = [UInt8](repeating: .random(in: 0 ... .max, using: &random), count: count)
            world.ends[end].write(Bytes(bytes), to: id)
            world.records[id]?.directions[end].written += bytes
        case 5:
            guard let id, !world.ends[end].isLane(id), world.records[id]?.isReset == false else { return }
            world.ends[end].finish(id)
            world.records[id]?.directions[end].isFinished = true
        case 6:
            guard let id, !world.ends[end].isLane(id), Bool.random(using: &random) else { return }
            world.ends[end].reset(id)
            world.ends[end].release(id)
            world.records[id]?.isReset = true
        case 7..<9:
            guard let id else { return }
            check(read: id, at: end, upTo: Int.random(in: 1...200_000, using: &random), &world)
        default:
            try carry(from: end, &world, Int.random(in: 1...150_000, using: &random), &random)
        }
    }

    private func check(read id: UInt32, at end: Int, upTo limit: Int, _ world: inout World) {
        var left = limit
        while left > 0, let bytes = world.ends[end].read(id, upTo: left) {
            left -= bytes.count
            guard let direction = world.records[id]?.directions[1 - end] else { return }
            let range = direction.read..<direction.read + bytes.count
            if range.upperBound > direction.written.count || !isEqual(bytes, direction.written[range]) {
                Issue.record("stream \(id) carried other bytes than were written")
                return
            }
            world.records[id]?.directions[1 - end].read += bytes.count
        }
        if let state = world.ends[end].streams[id], state.hasReceivedEnd, state.received.isEmpty {
            world.records[id]?.directions[1 - end].hasSeenEnd = true
        }
    }

    /// `==` walks byte by byte, which takes its time in a debug build.
    private func isEqual(_ bytes: Bytes, _ other: ArraySlice<UInt8>) -> Bool {
        bytes.withUnsafeBytes { left in
            other.withUnsafeBytes { right in
                guard left.count == right.count, let mine = left.baseAddress, let theirs = right.baseAddress else {
                    return left.isEmpty && right.isEmpty
                }
                return memcmp(mine, theirs, left.count) == 0
            }
        }
    }

    /// Moves bytes over the wire in pieces of any size.
    private func carry(from end: Int, _ world: inout World, _ limit: Int, _ random: inout SeededGenerator) throws {
        while world.ends[end].hasOutput, world.wire[end].count < limit {
            world.ends[end].takeOutput(upTo: 65_536).withUnsafeBytes { world.wire[end].append(contentsOf: $0) }
        }
        let count = min(limit, world.wire[end].count)
        var moving = Bytes(world.wire[end].prefix(count))
        world.wire[end].removeFirst(count)
        while !moving.isEmpty {
            let size = [1, 11, 13, 5000, 70_000].randomElement(using: &random) ?? 1
            try world.ends[1 - end].receive(moving.takeFirst(min(size, moving.count)))
        }
        for event in world.ends[1 - end].takeEvents() {
            switch event {
            case .opened(let id):
                world.records[id]?.isKnown[1 - end] = true
            case .reset(let id):
                #expect(world.records[id]?.isReset == true, "a stream was reset by nobody")
            case .readable, .writable, .mayOpen, .goingAway, .pong:
                break
            }
        }
        _ = world.ends[end].takeEvents()
        for session in world.ends { #expect(session.peerOpenCount <= 5) }
    }
}
