import Foundation
import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// The line that a box shows, against the vectors that Python has made (R95).
@Suite struct PairingLineTests {
    private struct Vectors: Decodable {
        struct Vector: Decodable {
            struct Failure: Decodable, Equatable {
                let fault: String
                var field: String?
                var offset: Int?
            }

            let name, line: String
            var value: [String: String]?
            var error: Failure?
        }

        let vectors: [Vector]
    }

    private let vectors: [Vectors.Vector]

    init() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../vectors/pairing-line.json")
        vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file)).vectors
    }

    // R164
    @Test func `Every vector reads as Python says`() throws {
        #expect(vectors.count > 80)
        for vector in vectors {
            do throws(PairingLineError) {
                let line = try PairingLine(vector.line)
                #expect(described(line) == vector.value, "\(vector.name)")
            } catch {
                #expect(failure(error) == vector.error, "\(vector.name)")
            }
        }
    }

    // R164
    @Test func `What Python wrote is written the same here`() throws {
        for vector in vectors.prefix(8) {
            let read = try PairingLine(vector.line)
            let made = try #require(
                PairingLine(
                    door: read.door, boxKey: read.boxKey, doorKeys: read.doorKeys, code: read.code, pins: read.pins))
            #expect(made.text == vector.line)
        }
    }

    @Test func `Every way to be no line has a name of its own`() {
        let names = Set(vectors.compactMap(\.error?.fault))
        #expect(names.isSuperset(of: ["noLine", "otherVersion", "noText", "wrongHome"]))
        #expect(names.isSuperset(of: ["cutShort", "outOfOrder", "missing", "badLength", "badValue"]))
        let sentences = Set(vectors.map { words(of: $0) })
        #expect(sentences.count > 12)
    }

    // B23
    @Test func `Nothing of the code is shown`() throws {
        let line = try PairingLine(vectors[0].line)
        var dumped = ""
        dump(line, to: &dumped)
        for text in ["\(line)", String(reflecting: line), dumped] {
            #expect(text.contains(line.home.description) || text.contains("pairing line"))
            #expect(!text.contains(line.code.hex) && !text.contains(line.text.suffix(40)))
        }
        for vector in vectors where vector.line.count > 20 {
            #expect(!words(of: vector).contains(vector.line.suffix(12)))
        }
    }

    @Test func `Random lines come back, and a changed one is read or refused and no more`() throws {
        var random = SeededGenerator.announced()
        for _ in 0..<300 {
            let key = { StaticPrivateKey().publicKey }
            let code = Bytes((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
            let line = try #require(
                PairingLine(
                    door: try ServiceURL("wss://door.example:\(Int.random(in: 1...65_535, using: &random))"),
                    boxKey: key(), doorKeys: Bool.random(using: &random) ? [key()] : [key(), key()], code: code))
            #expect(try PairingLine(line.text) == line)
            var changed = Array(line.text.utf8)
            let index = Int.random(in: 0..<changed.count, using: &random)
            changed[index] = UInt8.random(in: 0x20...0x7e, using: &random)
            _ = try? PairingLine(
                String(decoding: changed.prefix(Int.random(in: 0...changed.count, using: &random)), as: UTF8.self))
        }
    }

    @Test func `Parts of a wrong size make no line`() throws {
        let key = StaticPrivateKey().publicKey
        let url = try ServiceURL("wss://door.example")
        let code = Bytes(repeating: 1, count: 16)
        #expect(PairingLine(door: url, boxKey: key, doorKeys: [key], code: code) != nil)
        #expect(PairingLine(door: url, boxKey: key, doorKeys: [], code: code) == nil)
        #expect(PairingLine(door: url, boxKey: key, doorKeys: [key, key], code: code) == nil)
        #expect(PairingLine(door: url, boxKey: key, doorKeys: [key], code: code.dropFirst(1)) == nil)
        let long = try ServiceURL("wss://door.example/" + String(repeating: "x", count: 512))
        #expect(PairingLine(door: long, boxKey: key, doorKeys: [key], code: code) == nil)
    }

    private func words(of vector: Vectors.Vector) -> String {
        do throws(PairingLineError) {
            return "\(try PairingLine(vector.line))"
        } catch {
            return "\(error)"
        }
    }

    private func described(_ line: PairingLine) -> [String: String] {
        var value = [
            "home": line.home.bytes.hex, "box": line.boxKey.bytes.hex, "doors": line.doorKeys.map(\.bytes.hex).joined(),
            "code": line.code.hex,
            "url": line.door.target == .root
                ? "\(line.door.endpoint)" : "\(line.door.endpoint)\(line.door.target.wireForm)",
        ]
        if !line.pins.isEmpty { value["pins"] = line.pins.map(\.bytes.hex).joined() }
        return value
    }

    private func failure(_ error: PairingLineError) -> Vectors.Vector.Failure {
        if let fault = error.fault {
            return Vectors.Vector.Failure(fault: fault.fault.rawValue, field: fault.field, offset: fault.offset)
        }
        switch error {
        case .noLine: return Vectors.Vector.Failure(fault: "noLine")
        case .otherVersion: return Vectors.Vector.Failure(fault: "otherVersion")
        case .noText: return Vectors.Vector.Failure(fault: "noText")
        default: return Vectors.Vector.Failure(fault: "wrongHome")
        }
    }
}
