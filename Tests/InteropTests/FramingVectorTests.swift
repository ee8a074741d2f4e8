import Foundation
import QUICTransport
import Testing
import TransportKit

/// The vectors that the Python framing made, replayed here; `Peers/test_vectors.py` replays them there.
@Suite struct FramingVectorTests {
    private struct File: Decodable {
        struct Number: Decodable {
            let value: String
            let hex: String
            let shortest: Bool
        }

        struct Run: Decodable {
            let hex: String
            let count: Int?

            var bytes: Bytes {
                let one = Bytes(hex: hex)
                return (1..<max(count ?? 1, 1)).reduce(into: one) { bytes, _ in bytes.append(contentsOf: one) }
            }
        }

        struct Stream: Decodable {
            let kind: String
            let name: String
            let wire: [Run]
            let messages: [Run]
            let target: String?
            let close: UInt64?
            let unknownKind: UInt64?
        }

        let varints: [Number]
        let streams: [Stream]
    }

    /// What a reader made of a stream.
    private struct Reading: Equatable {
        var target: String?
        var messages: [Bytes] = []
        var close: UInt64?
        var unknownKind: UInt64?
        var isBetweenItems = true
    }

    private let file: File

    init() throws {
        let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../vectors/framing.json")
        file = try JSONDecoder().decode(File.self, from: Data(contentsOf: path))
    }

    @Test func `Varints read as Python wrote them, and are written alike`() throws {
        #expect(file.varints.count == 20)
        for vector in file.varints {
            let wire = Bytes(hex: vector.hex)
            let value = try #require(UInt64(vector.value))
            let read = try #require(Varint.read(from: wire))
            #expect(read == (value, wire.count))
            var written = Bytes()
            Varint.append(value, to: &written)
            #expect((written == wire) == vector.shortest)
        }
    }

    // R5, R6, R7, in one piece and in many.
    @Test func `The streams of QUIC read as Python reads them`() {
        #expect(file.streams.count == 22)
        for vector in file.streams {
            let wire = vector.wire.reduce(into: Bytes()) { $0.append(contentsOf: $1.bytes) }
            let expected = Reading(
                target: vector.target, messages: vector.messages.map(\.bytes), close: vector.close,
                unknownKind: vector.unknownKind)
            for step in [wire.count < 100_000 ? 1 : 65_537, 1_000, wire.count] {
                #expect(read(vector.kind, wire, step: step) == expected, "\(vector.name), \(step) bytes at a time")
            }
        }
    }

    // R6: the parser that MuxCarrier and plug-ins use reads the same streams.
    @Test func `Length-prefixed messages read as Python reads them`() {
        for vector in file.streams where vector.kind == "dialer" {
            var parser = LengthPrefixedMessages(limit: 1 << 20)
            var reading = Reading()
            for run in vector.wire { parser.feed(run.bytes) }
            do throws(LengthPrefixedMessages.TooLong) {
                while let message = try parser.next() { reading.messages.append(message) }
            } catch {
                reading.close = CloseCode.tooBig.rawValue
            }
            #expect(
                reading == Reading(messages: vector.messages.map(\.bytes), close: vector.close), "\(vector.name)")
            guard vector.close == nil else { continue }
            // Written here, they are the bytes that Python wrote.
            let written = vector.messages.reduce(into: Bytes()) { wire, message in
                let payload = message.bytes
                wire.append(contentsOf: LengthPrefixedMessages.header(for: payload.count))
                wire.append(contentsOf: payload)
            }
            #expect(written == vector.wire.reduce(into: Bytes()) { $0.append(contentsOf: $1.bytes) })
        }
    }

    private func read(_ kind: String, _ wire: Bytes, step: Int) -> Reading {
        var input =
            switch kind {
            case "listener": FramedInput.target(thenMessagesUpTo: 1 << 20)
            case "dialer": FramedInput.messages(upTo: 1 << 20)
            default: FramedInput.unidirectional(messagesUpTo: 1 << 20)
            }
        var reading = Reading()
        var rest = wire
        do throws(FramedInput.Failure) {
            while !rest.isEmpty {
                let piece = rest.takeFirst(min(step, rest.count))
                try piece.withUnsafeBytes { bytes throws(FramedInput.Failure) in
                    try input.feed(bytes) { item in
                        guard item.isTarget else { return reading.messages.append(item.payload) }
                        // What QUICConnection does with a target that is no path: 4400.
                        guard let target = String(validating: item.payload).flatMap({ Target($0) }) else {
                            return reading.close = CloseCode.badTarget.rawValue
                        }
                        reading.target = target.wireForm
                    }
                }
            }
            reading.isBetweenItems = input.isBetweenItems
        } catch {
            switch error {
            case .tooLong: reading.close = CloseCode.tooBig.rawValue
            case .badTarget: reading.close = CloseCode.badTarget.rawValue
            case .unknownKind(let number): reading.unknownKind = number
            }
        }
        return reading
    }
}

extension Bytes {
    /// Bytes written as hexadecimal digits.
    fileprivate init(hex: String) {
        var bytes: [UInt8] = []
        var rest = hex[...]
        while let byte = UInt8(rest.prefix(2), radix: 16), rest.count >= 2 {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        precondition(rest.isEmpty, "not hexadecimal")
        self.init(bytes)
    }
}
