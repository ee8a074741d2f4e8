import Testing
import TransportKit
import TransportKitTesting

@testable import NoiseCarrier

/// The messages of a session, and everything that must not pass for one (part 2.2).
@Suite struct SessionTests {
    let pair: Pair

    init() throws {
        pair = try Pair()
    }

    @Test func `A stream of 200 messages arrives, in both directions`() throws {
        for number in 0..<200 {
            let text = Bytes("message \(number)")
            #expect(try pair.responder.open(try pair.initiator.seal(text)) == text)
            #expect(try pair.initiator.open(try pair.responder.seal(text)) == text)
        }
    }

    @Test func `A message is 24 bytes longer, says its number in the clear and nothing else`() throws {
        let text = Bytes("a text that can be recognized")
        for number in 0..<300 {
            let sealed = try pair.initiator.seal(text)
            #expect(sealed.count == text.count + 24)
            #expect(Array(sealed.prefix(8)) == [0, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 255)])
            #expect(!Array(sealed).contains(Array(text).prefix(8)))
        }
        #expect(try pair.initiator.seal(Bytes()).count == 24)
    }

    @Test func `Any flipped bit is refused and costs nothing`() throws {
        let sealed = try pair.seal("hello")
        for index in 0..<sealed.count {
            for bit in 0..<8 {
                #expect(throws: NoiseError.authentication) { try pair.open(sealed.flipped(at: index, bit: 1 << bit)) }
            }
        }
        #expect(try pair.open(sealed) == Bytes("hello"))
    }

    @Test func `A truncated tag and a forged tag are refused`() throws {
        let sealed = try pair.seal("hello")
        #expect(throws: NoiseError.authentication) { try pair.open(sealed.prefix(sealed.count - 1)) }
        var forged = sealed.prefix(sealed.count - 16)
        forged.append(contentsOf: [UInt8](repeating: 0, count: 16))
        #expect(throws: NoiseError.authentication) { try pair.open(forged) }
        #expect(try pair.open(sealed) == Bytes("hello"))
    }

    @Test func `A message with another's number is refused`() throws {
        let (first, second) = (try pair.seal("one"), try pair.seal("two"))
        var renumbered = second.prefix(8)
        renumbered.append(contentsOf: first.dropFirst(8))
        #expect(throws: NoiseError.authentication) { try pair.open(renumbered) }
        #expect(try pair.open(second) == Bytes("two"))
        #expect(try pair.open(first) == Bytes("one"))
    }

    @Test func `Less than 24 bytes are no message`() throws {
        for count in 0..<24 {
            #expect(throws: NoiseError.messageTooShort) { try pair.open(Bytes([UInt8](repeating: 0, count: count))) }
        }
        #expect(throws: NoiseError.authentication) { try pair.open(Bytes([UInt8](repeating: 0, count: 24))) }
    }

    @Test func `A message is opened once, also after ten more`() throws {
        let first = try pair.seal("first")
        #expect(try pair.open(first) == Bytes("first"))
        #expect(throws: NoiseError.replay) { try pair.open(first) }
        for _ in 0..<10 { _ = try pair.open(try pair.seal("more")) }
        #expect(throws: NoiseError.replay) { try pair.open(first) }
    }

    @Test func `Messages inside the window may come in any order, one older than it may not`() throws {
        // R68: gaps cost nothing.
        let messages = try (0..<1100).map { try pair.seal("\($0)") }
        #expect(try pair.open(messages[1023]) == Bytes("1023"))
        for number in [0, 1000, 5, 512] { #expect(try pair.open(messages[number]) == Bytes("\(number)")) }
        #expect(try pair.open(messages[1099]) == Bytes("1099"))
        #expect(throws: NoiseError.replay) { try pair.open(messages[75]) }
        #expect(try pair.open(messages[76]) == Bytes("76"))
    }

    @Test func `A forged number moves nothing`() throws {
        // R67: only what authenticated moves the window.
        let messages = try (0..<3).map { try pair.seal("\($0)") }
        for number in [UInt8(200), 255] {
            #expect(throws: NoiseError.authentication) { try pair.open(messages[0].flipped(at: 7, bit: number)) }
            #expect(throws: NoiseError.authentication) { try pair.open(messages[0].flipped(at: 0, bit: number)) }
        }
        for number in 0..<3 { #expect(try pair.open(messages[number]) == Bytes("\(number)")) }
    }

    @Test func `The last usable number is used, the reserved one never`() throws {
        let key = Secret(count: 32)
        var sealer = NoiseSealer(key: key.copy(), next: .max - 1)
        var opener = NoiseOpener(key: key.copy())
        let last = try sealer.seal(Bytes("last"))
        #expect(TransportMessage.number(of: last) == UInt64.max - 1)
        #expect(try opener.open(last) == Bytes("last"))
        for _ in 0..<2 {
            let error = #expect(throws: NoiseError.self) { () throws in
                _ = try sealer.sealAny()
            }
            #expect(error == .nonceExhausted)
        }
        let reserved = Bytes([UInt8](repeating: 255, count: 40))
        #expect(throws: NoiseError.nonceExhausted) { try opener.open(reserved) }
    }

    @Test func `Closed ends refuse, and never pass plaintext`() throws {
        let sealed = try pair.seal("hello")
        pair.initiator.close()
        pair.responder.close()
        #expect(throws: NoiseError.closed) { try pair.initiator.seal(Bytes("hello")) }
        #expect(throws: NoiseError.closed) { try pair.open(sealed) }
    }

    @Test func `The directions have keys of their own`() throws {
        let sealed = try pair.seal("hello")
        #expect(throws: NoiseError.authentication) { try pair.initiator.open(sealed) }
        let stranger = try Pair()
        #expect(throws: NoiseError.authentication) { try stranger.open(sealed) }
    }

    @Test func `A message that nobody else holds is opened in place, one that is held stays as it was`() throws {
        var message = try pair.seal("in place")
        let start = message.withUnsafeBytes { $0.baseAddress }
        let opened = try pair.responder.open(exchange(&message))
        #expect(opened.withUnsafeBytes { $0.baseAddress } == start.map { $0 + 8 })

        let held = try pair.seal("held")
        let copy = Bytes(Array(held))
        #expect(try pair.open(held) == Bytes("held"))
        #expect(held == copy)
    }

    private func exchange(_ message: inout Bytes) -> Bytes {
        var taken = Bytes()
        swap(&taken, &message)
        return taken
    }

    @Test func `Nothing that is mutated or made up passes, and nothing of it traps`() throws {
        var random = SeededGenerator.announced()
        for round in 0..<4000 {
            let text = Bytes.random(Int.random(in: 0...80, using: &random), using: &random)
            var message = try pair.initiator.seal(text)
            let sealed = message
            switch Int.random(in: 0..<6, using: &random) {
            case 0: message = message.prefix(Int.random(in: 0..<message.count, using: &random))
            case 1: message.append(UInt8.random(in: 0...255, using: &random))
            case 2: message = .random(Int.random(in: 0...120, using: &random), using: &random)
            case 3: message = message.dropFirst(Int.random(in: 1...message.count, using: &random))
            default:
                let place = Int.random(in: 0..<message.count, using: &random)
                message = message.flipped(at: place, bit: 1 << UInt8.random(in: 0..<8, using: &random))
            }
            do {
                _ = try pair.open(message)
                Issue.record("round \(round): a mutated message was opened")
            } catch {
                #expect([.authentication, .messageTooShort, .replay, .nonceExhausted].contains(error))
            }
            // Some are lost, which costs no other.
            if round % 3 > 0 { #expect(try pair.open(sealed) == text) }
        }
    }
}

extension NoiseSealer {
    fileprivate mutating func sealAny() throws(NoiseError) -> Bytes { try seal(Bytes("any")) }
}
