import Testing
import TransportKit
import WebSocketTransport

/// The protocol engine, without I/O.
@Suite struct WireTests {
    let key: [UInt8] = [0x37, 0xfa, 0x21, 0x3d]

    // MARK: - Messages

    @Test(arguments: [0, 1, 7, 8, 125, 126, 127, 65_535, 65_536, 100_001])
    func `A message of any length survives the way in both directions, however it is cut`(length: Int) {
        let payload = Bytes((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        for (from, to) in [(WebSocketWire.Role.client, WebSocketWire.Role.server), (.server, .client)] {
            var wire = WebSocketWire(role: from, maxMessageBytes: 1 << 20)
            var output = Bytes()
            wire.write(Message(payload), into: &output)
            wire.write(.text("grüße"), into: &output)
            for step in [Int.max, 4096, 1000, 13, 1] where length < 1000 || step > 12 {
                let received = receive(output, as: to, step: step)
                #expect(received.messages == [Message(payload), .text("grüße")])
                #expect(received.failure == nil)
            }
        }
    }

    @Test func `A client masks every frame with a new key and a server masks none`() {
        var client = WebSocketWire(role: .client, maxMessageBytes: 1 << 20)
        var server = WebSocketWire(role: .server, maxMessageBytes: 1 << 20)
        var keys: Set<Bytes> = []
        for _ in 0..<500 {
            var output = Bytes()
            client.write(Message(Bytes("abcd")), into: &output)
            #expect(output[1] == 0x84)
            keys.insert(output[2..<6])
            output = Bytes()
            server.write(Message(Bytes("abcd")), into: &output)
            #expect(output == hex("8204") + Bytes("abcd"))
        }
        #expect(keys.count > 490)
        var output = Bytes()
        client.writePing(into: &output)
        client.writeClose(CloseFrame(.normal, reason: ""), into: &output)
        #expect(output[1] == 0x80)
        #expect(output[7] == 0x82)
    }

    @Test func `A message in single bytes with pings in between is put together`() {
        let payload = Bytes((0..<2000).map { UInt8(truncatingIfNeeded: $0) })
        var bytes = frame(0x02, Bytes(), key: key)
        for byte in payload {
            bytes.append(contentsOf: frame(0x00, Bytes([byte]), key: key))
            bytes.append(contentsOf: frame(0x89, Bytes("p"), key: key))
        }
        bytes.append(contentsOf: frame(0x80, Bytes(), key: key))
        let received = receive(bytes, as: .server)
        #expect(received.messages == [Message(payload)])
        #expect(received.answers.count == 2000 * 3)
    }

    // MARK: - Limits

    @Test func `A message above the limit is refused by its header alone`() {
        #expect(receive(frame(0x82, key: key, announced: 1 << 40), as: .server).failure?.code == .tooBig)
        #expect(receive(frame(0x82, key: key, announced: 101), as: .server, limit: 100).failure?.code == .tooBig)
        #expect(receive(frame(0x82, Bytes(repeating: 1, count: 100), key: key), as: .server, limit: 100).failure == nil)
    }

    @Test func `Fragments together stay under the limit too`() {
        let first = frame(0x02, Bytes(repeating: 1, count: 60), key: key)
        let second = frame(0x80, Bytes(repeating: 1, count: 41), key: key)
        #expect(receive(first + second, as: .server, limit: 100).failure?.code == .tooBig)
        #expect(receive(first + second, as: .server, limit: 101).messages.first?.payload.count == 101)
    }

    @Test func `An endless row of empty fragments ends with 1002`() {
        var bytes = frame(0x02, Bytes("x"), key: key)
        for _ in 0..<2000 { bytes.append(contentsOf: frame(0x00, key: key)) }
        #expect(receive(bytes, as: .server).failure?.code == .protocolError)
    }

    @Test func `A flood of pings is answered within a bound, and the last one surely`() {
        var bytes = Bytes()
        for number in 0..<10_000 { bytes.append(contentsOf: frame(0x89, Bytes("number \(number)"), key: key)) }
        let received = receive(bytes, as: .server)
        #expect(received.failure == nil)
        #expect(received.answers.count < 70_000)
        let last = frame(0x8a, Bytes("number 9999"))
        #expect(received.answers.dropFirst(received.answers.count - last.count) == last)
    }

    @Test func `Pings that fit are each answered, in order, with their own payload`() {
        var bytes = Bytes()
        var answers = Bytes()
        for number in 0..<10 {
            bytes.append(contentsOf: frame(0x89, Bytes("\(number)"), key: key))
            answers.append(contentsOf: frame(0x8a, Bytes("\(number)")))
        }
        #expect(receive(bytes, as: .server).answers == answers)
    }

    // MARK: - Broken rules

    struct Violation: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: Bytes
        var role = WebSocketWire.Role.server
        var code = CloseCode.protocolError
    }

    static let violations: [Violation] = {
        let key: [UInt8] = [1, 2, 3, 4]
        func close(_ code: UInt16, _ reason: Bytes = Bytes()) -> Bytes {
            frame(0x88, Bytes([UInt8(code >> 8), UInt8(code & 255)]) + reason, key: key)
        }
        var all = [
            Violation(testDescription: "no mask from a client", bytes: frame(0x82, Bytes("a"))),
            Violation(testDescription: "a mask from a server", bytes: frame(0x82, Bytes("a"), key: key), role: .client),
            Violation(testDescription: "a continuation of nothing", bytes: frame(0x80, Bytes("a"), key: key)),
            Violation(
                testDescription: "a message inside another",
                bytes: frame(0x01, Bytes("a"), key: key) + frame(0x81, Bytes("b"), key: key)),
            Violation(testDescription: "a ping in fragments", bytes: frame(0x09, Bytes("a"), key: key)),
            Violation(
                testDescription: "a ping of 126 bytes", bytes: frame(0x89, Bytes(repeating: 0, count: 126), key: key)),
            Violation(
                testDescription: "5 bytes in the form of 2",
                bytes: frame(0x82, Bytes("abcde"), key: key, lengthBytes: 2)),
            Violation(
                testDescription: "300 bytes in the form of 8",
                bytes: frame(0x82, Bytes(repeating: 0, count: 300), key: key, lengthBytes: 8)),
            Violation(testDescription: "half a close code", bytes: frame(0x88, Bytes([3]), key: key)),
            Violation(
                testDescription: "a close reason that is not UTF-8", bytes: close(1000, hex("c328")), code: .badText),
            Violation(
                testDescription: "text that is not UTF-8", bytes: frame(0x81, hex("41ff"), key: key), code: .badText),
            Violation(
                testDescription: "text cut inside a character", bytes: frame(0x81, hex("c3"), key: key), code: .badText),
        ]
        for kind in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8] {
            all.append(Violation(testDescription: "the reserved kind \(kind)", bytes: frame(0x80 | kind, key: key)))
        }
        for bits in [0x10, 0x20, 0x40, 0x70] as [UInt8] {
            all.append(
                Violation(testDescription: "reserved bits \(bits)", bytes: frame(0x82 | bits, Bytes("a"), key: key)))
            all.append(
                Violation(testDescription: "reserved bits \(bits) of a ping", bytes: frame(0x89 | bits, key: key)))
        }
        for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] as [UInt16] {
            all.append(Violation(testDescription: "a close with \(code)", bytes: close(code)))
        }
        return all
    }()

    @Test(arguments: violations)
    func `A broken rule is named and nothing after it is read`(violation: Violation) {
        let after = frame(0x82, Bytes("late"), key: violation.role == .server ? [9, 9, 9, 9] : nil)
        for step in [Int.max, 1] {
            let received = receive(violation.bytes + after, as: violation.role, step: step)
            #expect(received.failure?.code == violation.code)
            #expect(received.messages.isEmpty)
            #expect(received.close == nil)
        }
    }

    // MARK: - Text

    @Test func `A wrong byte in text is found before the frame is whole`() {
        let whole = frame(0x81, Bytes("hello ") + hex("f88080") + Bytes(repeating: 0x61, count: 100), key: key)
        #expect(receive(whole.prefix(6 + 6), as: .server).failure == nil)
        #expect(receive(whole.prefix(6 + 7), as: .server).failure?.code == .badText)
    }

    @Test func `A character may be cut by a fragment`() {
        let text = Bytes("€𝄞")
        for cut in 0...text.count {
            let bytes = frame(0x01, text.prefix(cut), key: key) + frame(0x80, text.dropFirst(cut), key: key)
            #expect(receive(bytes, as: .server).messages == [.text("€𝄞")])
        }
    }

    @Test func `The check agrees with the standard library on every two and three bytes that matter`() {
        let interesting: [UInt8] = [
            0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
            0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff,
        ]
        for first in interesting {
            for second in interesting {
                for third in interesting {
                    for fourth in [0x80, 0xbf, 0x41] as [UInt8] {
                        let bytes = Bytes([first, second, third, fourth])
                        var check = TextCheck()
                        let accepts = bytes.withUnsafeBytes { check.accepts($0) } && check.isComplete
                        #expect(accepts == (String(validating: bytes) != nil), "\(Array(bytes))")
                    }
                }
            }
        }
    }

    // MARK: - Closing

    @Test func `A code that may not travel is sent as what comes nearest`() {
        func sent(_ code: UInt64, _ reason: String = "why") -> CloseFrame {
            CloseFrame(CloseCode(rawValue: code), reason: reason)
        }
        for code in [1000, 1003, 1007, 1013, 3000, 4000, 4410, 4999] as [UInt64] {
            #expect(sent(code).code == UInt16(code))
            #expect(sent(code).reason == "why")
        }
        for code in [0, 1005, 1006] as [UInt64] { #expect(sent(code).body.isEmpty) }  // R120
        for code in [1, 256, 999, 1004, 1015, 1016, 2999, 5000, 65_536, 1 << 40] as [UInt64] {
            #expect(sent(code).code == 1008)
            #expect(sent(code).reason == "code \(code): why")
        }
        #expect(sent(4000, String(repeating: "é", count: 200)).reason == String(repeating: "é", count: 61))
    }

    @Test func `A close is read with its code and reason, and nothing after it is`() {
        let close = frame(0x88, hex("1139") + Bytes("epoch 7"), key: key)
        let received = receive(
            frame(0x82, Bytes("a"), key: key) + close + frame(0x82, Bytes("b"), key: key), as: .server)
        #expect(received.messages.map(\.payload) == [Bytes("a")])
        #expect(received.close?.received == Close(.displaced, reason: "epoch 7", origin: .remote))
        #expect(receive(frame(0x88, key: key), as: .server).close?.received.code == .noneGiven)
    }

    @Test func `Ends that share a reader of headers are not harmed by each other's peers`() throws {
        let headers = FrameHeaders()
        var broken = WebSocketWire(role: .server, maxMessageBytes: 1 << 20, headers: headers)
        var sound = WebSocketWire(role: .server, maxMessageBytes: 1 << 20, headers: headers)
        var messages: [Message] = []
        let message = frame(0x82, Bytes(repeating: 7, count: 70_000), key: key)
        try message.prefix(100).withUnsafeBytes { try sound.receive($0, into: &messages) }
        // A length of 5 in a form that has room for 65,535.
        let padded = frame(0x82, Bytes("hello"), key: key, lengthBytes: 2)
        #expect(throws: WireFailure.self) {
            try padded.withUnsafeBytes { try broken.receive($0, into: &messages) }
        }
        try message.dropFirst(100).withUnsafeBytes { try sound.receive($0, into: &messages) }
        try frame(0x82, Bytes("a"), key: key).withUnsafeBytes { try sound.receive($0, into: &messages) }
        #expect(messages.map(\.payload) == [Bytes(repeating: 7, count: 70_000), Bytes("a")])
    }

    @Test func `Nothing is written after the close frame`() {
        var wire = WebSocketWire(role: .server, maxMessageBytes: 100)
        var messages: [Message] = []
        var output = Bytes()
        wire.writeClose(CloseFrame(.normal, reason: ""), into: &output)
        let length = output.count
        frame(0x89, Bytes("p"), key: key).withUnsafeBytes { try? wire.receive($0, into: &messages) }
        wire.writeAnswers(into: &output)
        wire.writePing(into: &output)
        wire.writeClose(CloseFrame(.normal, reason: ""), into: &output)
        #expect(output.count == length)
        let hasAnswers = wire.hasAnswers
        #expect(!hasAnswers)
    }
}
