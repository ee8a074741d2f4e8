import Foundation
import Testing
import TransportKit
import TransportKitTesting

@Suite struct VarintTests {
    private struct Vectors: Decodable {
        struct Vector: Decodable {
            let hex: String
            let value: String
            let canonical: Bool?
        }
        let samples: [Vector]
        let edges: [Vector]
    }

    private static func load() throws -> Vectors {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "vectors/quic-varint-rfc9000.json")
        return try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
    }

    @Test func `The published vectors read and write as RFC 9000 says`() throws {
        let vectors = try Self.load()
        #expect(vectors.samples.count == 5)
        #expect(vectors.edges.count == 7)
        for vector in vectors.samples + vectors.edges {
            let wire = Bytes(hex: vector.hex)
            let value = try #require(UInt64(vector.value))
            let read = try #require(Varint.read(from: wire))
            #expect(read.value == value)
            #expect(read.length == wire.count)
            // Any form may be read, only the shortest is written.
            guard vector.canonical != false else { continue }
            var written = Bytes()
            Varint.append(value, to: &written)
            #expect(written == wire)
            #expect(Varint.length(of: value) == wire.count)
        }
    }

    @Test func `A varint that is cut short is not read`() {
        let wire = Bytes(hex: "c2197c5eff14e88c")
        for length in 0..<wire.count { #expect(Varint.read(from: wire.prefix(length)) == nil) }
        #expect(Varint.read(from: wire, at: 8) == nil)
        #expect(Varint.read(from: wire, at: 100) == nil)
    }

    @Test func `Any number comes back from any offset`() throws {
        var generator = SeededGenerator.announced()
        for _ in 0..<2000 {
            let value =
                UInt64.random(in: 0...Varint.max, using: &generator) >> UInt64.random(in: 0...61, using: &generator)
            let offset = Int.random(in: 0..<10, using: &generator)
            var bytes = Bytes(repeating: 0xff, count: offset)
            Varint.append(value, to: &bytes)
            bytes.append(0xaa)
            let read = try #require(Varint.read(from: bytes, at: offset))
            #expect(read.value == value)
            #expect(read.length == bytes.count - offset - 1)
        }
    }
}

extension Bytes {
    /// Bytes written as hexadecimal digits.
    init(hex: String) {
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
