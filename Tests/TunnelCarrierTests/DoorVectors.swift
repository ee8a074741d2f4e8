import Foundation
import NoiseCarrier
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// The file `Tests/vectors/door-wire.json`, and the half of it that is made here.
struct DoorVectors: Decodable {
    struct Vector: Codable, Equatable {
        struct Failure: Codable, Equatable {
            let fault: String
            let message: String
            let field: String?
            let offset: Int
        }

        let name: String
        let reads: String
        let way: String
        var datagram: Bool?
        let hex: String
        var value: [String: String]?
        var exact: Bool?
        var error: Failure?

        /// Some bytes and what the decoder says of them.
        init(_ name: String, _ reads: String, _ way: DoorWay, _ bytes: Bytes, isDatagram: Bool = false) {
            self.name = name
            self.reads = reads
            self.way = way.rawValue
            datagram = isDatagram ? true : nil
            hex = bytes.packed
            do {
                let read = try DoorValue.decode(reads, bytes, way, isDatagram: isDatagram)
                value = read.described
                exact = read.encoded() == bytes
            } catch {
                self.error = Failure(
                    fault: error.fault.rawValue, message: error.message, field: error.field, offset: error.offset)
            }
        }
    }

    struct Identity: Codable, Equatable {
        let key, home, homeBytes, device, code, pair: String

        init(key: StaticPublicKey, code: Bytes) {
            let home = HomeID(of: key)
            self.key = key.bytes.hex
            self.home = home.description
            homeBytes = home.bytes.hex
            device = DeviceID(of: key).description
            self.code = code.hex
            pair = PairingHash(home: home, code: code)?.bytes.hex ?? "a code of another length"
        }
    }

    struct Half: Encodable {
        let identities: [Identity]
        let vectors: [Vector]
    }

    let swiftIdentities, pythonIdentities: [Identity]
    let swiftVectors, pythonVectors: [Vector]

    enum CodingKeys: String, CodingKey {
        case swiftIdentities = "swift.identities"
        case pythonIdentities = "python.identities"
        case swiftVectors = "swift.vectors"
        case pythonVectors = "python.vectors"
    }

    static func read() throws -> DoorVectors {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../vectors/door-wire.json")
        return try JSONDecoder().decode(DoorVectors.self, from: Data(contentsOf: file))
    }

    /// The half that is made here; the same each time.
    static func make() throws -> Half {
        var random = SeededGenerator(seed: 4)
        var vectors: [Vector] = []
        for (name, value, way) in usable() {
            vectors.append(Vector(name, value.reads, way, value.encoded() ?? Bytes()))
        }
        // Random messages of every kind, and what becomes of each when one thing about it changes.
        for number in 0..<60 {
            let (value, way) = DoorValue.random(using: &random)
            let bytes = value.encoded() ?? Bytes()
            vectors.append(Vector("random \(number)", value.reads, way, bytes))
            for change in 0..<5 {
                let changed = bytes.mutated(using: &random)
                let other = DoorWay.allCases[Int.random(in: 0..<4, using: &random)]
                let isDatagram = value.reads == "message" && change == 4
                vectors.append(
                    Vector(
                        "random \(number), change \(change)", value.reads, change == 3 ? other : way, changed,
                        isDatagram: isDatagram))
            }
        }
        let identities = (0..<4).compactMap { number -> Identity? in
            let bytes = Bytes((0..<32).map { UInt8(truncatingIfNeeded: $0 &* (number + 3)) })
            let code = Bytes((0..<16).map { UInt8(truncatingIfNeeded: 255 - $0 - number) })
            return StaticPublicKey(bytes).map { Identity(key: $0, code: code) }
        }
        return Half(identities: identities, vectors: vectors)
    }

    /// Messages at their edges.
    private static func usable() -> [(String, DoorValue, DoorWay)] {
        let key = { (byte: UInt8) in StaticPublicKey(Bytes(repeating: byte, count: 32)) }
        guard let boxKey = key(9), let deviceKey = key(8), let hash = PairingHash(Bytes(repeating: 0x5c, count: 32)),
            let tun = BoxCapabilities([BoxCapabilities.tunnel]), let none = BoxCapabilities([])
        else { preconditionFailure("a value of the vectors cannot be made") }
        let home = HomeID(of: boxKey)
        let device = DeviceID(of: deviceKey)
        let session = TunnelSessionID(rawValue: 0xfedc_ba98_7654_3210)
        let first = TunnelFrame(.begin, session: session, payload: Bytes(repeating: 0xa1, count: 96))
        let longest = Bytes(repeating: 0x77, count: DoorLimits.framePayload)
        let manyKeys = DeviceKeys(
            (0..<40).compactMap { number in
                StaticPublicKey(Bytes((0..<32).map { UInt8(truncatingIfNeeded: number >> ($0 < 4 ? 8 * $0 : 0)) }))
            })
        let windows = DoorLimits.window
        return [
            ("home", .clientHello(ClientHello(home: home, window: windows.lowerBound)), .clientToDoor),
            (
                "pair", .clientHello(ClientHello(home: home, pair: hash, window: DoorLimits.defaultWindow)),
                .clientToDoor
            ),
            ("tun", .clientHello(ClientHello(home: home, tun: first, window: windows.upperBound)), .clientToDoor),
            (
                "pair and tun",
                .clientHello(ClientHello(home: home, pair: hash, tun: first, window: windows.lowerBound)),
                .clientToDoor
            ),
            ("no box", .clientWelcome(ClientWelcome(window: windows.lowerBound, box: nil)), .doorToClient),
            ("a box", .clientWelcome(ClientWelcome(window: windows.upperBound, box: tun)), .doorToClient),
            ("a box without tun", .boxHello(BoxHello(window: windows.lowerBound, capabilities: none)), .boxToDoor),
            ("a box with tun", .boxHello(BoxHello(window: windows.lowerBound, capabilities: tun)), .boxToDoor),
            ("a door", .boxWelcome(BoxWelcome(window: windows.lowerBound)), .doorToBox),
            ("the box is here", .control(.box(none)), .doorToClient),
            ("the box is gone", .control(.box(nil)), .doorToClient),
            ("all the credit", .control(.credit(device: nil, session: session, total: Varint.max)), .doorToClient),
            ("no credit", .control(.credit(device: device, session: session, total: 0)), .doorToBox),
            ("no devices", .control(.roster(DeviceKeys([]), more: true)), .boxToDoor),
            ("many devices", .control(.roster(manyKeys, more: false)), .boxToDoor),
            ("a code for a second", .control(.expect(hash, seconds: 1)), .boxToDoor),
            ("the longest handshake", .message(.handshake(Bytes(repeating: 3, count: 4_096))), .boxToDoor),
            ("the longest control message", .message(.sealed(Bytes(repeating: 4, count: 40_984))), .doorToBox),
            ("an end", .message(.frame(.end(session: session))), .clientToDoor),
            ("an end at a box", .message(.frame(.end(device: device, session: session))), .doorToBox),
            (
                "the longest frame", .message(.frame(TunnelFrame(.control, session: session, payload: longest))),
                .doorToClient
            ),
            (
                "the longest bulk of a box",
                .message(.frame(TunnelFrame(.bulk, device: device, session: session, payload: longest))), .boxToDoor
            ),
            (
                "one byte",
                .message(.frame(TunnelFrame(.unreliable, device: device, session: session, payload: [0]))), .doorToBox
            ),
        ]
    }
}
