import Testing
import TransportKit
import TransportKitTesting

@testable import QUICTransport

@Suite struct FramedInputTests {
    /// Feeds bytes in pieces of the given sizes, over and over.
    private func feed(
        _ bytes: Bytes, to input: inout FramedInput, pieces: [Int]
    ) throws(FramedInput.Failure) -> [FramedInput.Item] {
        var items: [FramedInput.Item] = []
        var rest = bytes
        var turn = 0
        while !rest.isEmpty {
            let piece = rest.takeFirst(min(pieces[turn % pieces.count], rest.count))
            turn += 1
            try piece.withUnsafeBytes { (bytes) throws(FramedInput.Failure) in
                try input.feed(bytes) { items.append($0) }
            }
        }
        return items
    }

    private func framed(_ messages: [Bytes]) -> Bytes {
        var bytes = Bytes()
        for message in messages {
            Varint.append(UInt64(message.count), to: &bytes)
            bytes.append(contentsOf: message)
        }
        return bytes
    }

    // R6
    @Test(arguments: [[1], [2, 3], [7], [1000], [1, 5000], [100_000]])
    func `Messages come out as they went in, however they were cut`(pieces: [Int]) throws {
        let sizes = [0, 1, 63, 64, 200, 16_383, 16_384, 0, 5, 70_000]
        let messages = sizes.enumerated().map { Bytes(repeating: UInt8($0.offset), count: $0.element) }
        var input = FramedInput.messages(upTo: 1 << 20)
        let items = try feed(framed(messages), to: &input, pieces: pieces)
        #expect(items.map(\.payload) == messages)
        #expect(items.allSatisfy { !$0.isTarget })
        #expect(items.reduce(0) { $0 + $1.cost } == framed(messages).count)
        #expect(input.isBetweenItems)
    }

    // R5
    @Test func `The target comes first, and only once`() throws {
        var input = FramedInput.target(thenMessagesUpTo: 100)
        let items = try feed(framed([Bytes("/a?b"), Bytes("one"), Bytes("two")]), to: &input, pieces: [3])
        #expect(items.map(\.isTarget) == [true, false, false])
        #expect(items.map(\.payload) == [Bytes("/a?b"), Bytes("one"), Bytes("two")])
    }

    @Test(arguments: [0, 4097, 1 << 40])
    func `A target of a forbidden length is refused before any of it is kept`(length: UInt64) {
        var bytes = Bytes()
        Varint.append(length, to: &bytes)
        bytes.append(contentsOf: Bytes("/x"))
        var input = FramedInput.target(thenMessagesUpTo: 1 << 20)
        #expect(throws: FramedInput.Failure.badTarget(announced: length)) {
            try feed(bytes, to: &input, pieces: [1])
        }
    }

    @Test func `The longest target is let in`() throws {
        var input = FramedInput.target(thenMessagesUpTo: 10)
        let target = Bytes("/" + String(repeating: "t", count: 4095))
        #expect(try feed(framed([target]), to: &input, pieces: [999]).map(\.payload) == [target])
    }

    // R6
    @Test(arguments: [101, 1 << 40, Varint.max])
    func `A longer announced length is refused at once`(length: UInt64) {
        var bytes = framed([Bytes("fine")])
        Varint.append(length, to: &bytes)
        var input = FramedInput.messages(upTo: 100)
        #expect(throws: FramedInput.Failure.tooLong(announced: length, limit: 100)) {
            try feed(bytes, to: &input, pieces: [2])
        }
    }

    // R7
    @Test func `A unidirectional stream says its kind first`() throws {
        var input = FramedInput.unidirectional(messagesUpTo: 100)
        // 0 in its two-byte form.
        let bytes = Bytes([0x40, 0x00] + framed([Bytes("bulk")]))
        #expect(try feed(bytes, to: &input, pieces: [1]).map(\.payload) == [Bytes("bulk")])
        var other = FramedInput.unidirectional(messagesUpTo: 100)
        #expect(throws: FramedInput.Failure.unknownKind(33)) { try feed([33, 1, 2], to: &other, pieces: [9]) }
    }

    @Test func `Random cuts of random messages give the same messages`() throws {
        for seed in UInt64(1)...50 {
            var random = SeededGenerator(seed: seed)
            let messages = (0..<20).map { index in
                Bytes(repeating: UInt8(index), count: Int.random(in: 0...3000, using: &random))
            }
            let pieces = (0..<30).map { _ in Int.random(in: 1...1500, using: &random) }
            var input = FramedInput.messages(upTo: 4000)
            #expect(try feed(framed(messages), to: &input, pieces: pieces).map(\.payload) == messages, "seed \(seed)")
        }
    }
}
