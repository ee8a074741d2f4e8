import Testing
import TransportKit
import TransportKitTesting

@Suite struct LengthPrefixedMessagesTests {
    private func wire(_ messages: [Bytes]) -> Bytes {
        var wire = Bytes()
        for message in messages {
            wire.append(contentsOf: LengthPrefixedMessages.header(for: message.count))
            wire.append(contentsOf: message)
        }
        return wire
    }

    @Test func `Messages come out whole, however the bytes are cut`() throws {
        var generator = SeededGenerator.announced()
        for _ in 0..<100 {
            let messages = (0..<20).map { index in
                Bytes(
                    repeating: UInt8(index), count: [0, 1, 63, 64, 1000, 17_000].randomElement(using: &generator) ?? 0)
            }
            var rest = wire(messages)
            var parser = LengthPrefixedMessages(limit: 17_000)
            var received: [Bytes] = []
            while !rest.isEmpty {
                parser.feed(rest.takeFirst(min(rest.count, .random(in: 1..<5000, using: &generator))))
                while let message = try parser.next() { received.append(message) }
            }
            #expect(received == messages)
            #expect(parser.isBetweenMessages)
        }
    }

    @Test func `A length above the limit ends it before anything is kept`() throws {
        // R6: 2^40 bytes are announced.
        var parser = LengthPrefixedMessages(limit: 1000)
        parser.feed(Bytes(hex: "c0000100"))
        #expect(try parser.next() == nil)
        #expect(!parser.isBetweenMessages)
        parser.feed(Bytes(hex: "00000000"))
        for _ in 0..<2 {
            #expect(throws: LengthPrefixedMessages.TooLong(announced: 1 << 40, limit: 1000)) { try parser.next() }
        }
    }

    @Test func `A message of the limit itself is let in`() throws {
        var parser = LengthPrefixedMessages(limit: 1000)
        parser.feed(wire([Bytes(repeating: 1, count: 1000)]))
        #expect(try parser.next()?.count == 1000)
        #expect(try parser.next() == nil)
    }

    @Test func `A message that stops half way is not handed out`() throws {
        var parser = LengthPrefixedMessages(limit: 1000)
        parser.feed(wire([Bytes([1, 2, 3])]).prefix(3))
        #expect(try parser.next() == nil)
        #expect(parser.bufferedCount == 2)
        #expect(!parser.isBetweenMessages)
    }
}
