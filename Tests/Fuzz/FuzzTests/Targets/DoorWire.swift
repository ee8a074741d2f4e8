import Foundation
import TransportKit
import TransportKitTesting
import TunnelCarrier

extension FuzzTarget {
    /// The door's wire, in every direction: what is read is what would be written.
    static let doorWire = FuzzTarget(name: "door-wire") {
        try DoorSeeds.read().vectors.compactMap(\.seed)
    } run: { input in
        let choice = input.byte()
        let way = DoorWay.allCases[Int(choice & 3)]
        let reader = Int(choice >> 3)
        let isDatagram = choice & 4 != 0
        let bytes = input.rest()
        do {
            switch DoorSeeds.readers[reader % DoorSeeds.readers.count] {
            case "message":
                let read = try DoorMessage.decode(bytes, way, isDatagram: isDatagram)
                if case .unknown = read { return }
                try demand(try DoorMessage.decode(read.encoded(), way) == read, "a message changed: \(read)")
            case "control":
                let read = try DoorControl.decode(bytes, way)
                if case .unknown = read { return }
                try demand(try DoorControl.decode(read.encoded(), way) == read, "a control message changed: \(read)")
            case "client-hello":
                let read = try ClientHello(bytes)
                try demand(try ClientHello(read.encoded()) == read, "a client-hello changed")
            case "client-welcome":
                let read = try ClientWelcome(bytes)
                try demand(try ClientWelcome(read.encoded()) == read, "a client-welcome changed")
            case "box-hello":
                let read = try BoxHello(bytes)
                try demand(try BoxHello(read.encoded()) == read, "a box-hello changed")
            case _:
                let read = try BoxWelcome(bytes)
                try demand(try BoxWelcome(read.encoded()) == read, "a box-welcome changed")
            }
        } catch let error as DoorWireError {
            try demand((0...max(bytes.count, 1)).contains(error.offset), "\(error) is outside of \(bytes.count) bytes")
        }
    }
}

/// The vectors of the door's wire, as inputs.
private struct DoorSeeds: Decodable {
    struct Vector: Decodable {
        let reads: String
        let way: String
        let hex: String

        /// The choices of the target in front of the bytes; nil for the long ones, which the vectors write down packed.
        var seed: Bytes? {
            let way = DoorWay.allCases.firstIndex { $0.rawValue == self.way } ?? 0
            let reader = DoorSeeds.readers.firstIndex(of: reads) ?? 0
            guard let bytes = Bytes(hex: hex) else { return nil }
            return Bytes([UInt8(reader << 3 | way)] + Array(bytes))
        }
    }

    static let readers = ["message", "control", "client-hello", "client-welcome", "box-hello", "box-welcome"]

    let ours, theirs: [Vector]
    var vectors: [Vector] { ours + theirs }

    enum CodingKeys: String, CodingKey {
        case ours = "swift.vectors"
        case theirs = "python.vectors"
    }

    static func read() throws -> DoorSeeds {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../../vectors/door-wire.json")
        return try JSONDecoder().decode(DoorSeeds.self, from: Data(contentsOf: file))
    }
}
