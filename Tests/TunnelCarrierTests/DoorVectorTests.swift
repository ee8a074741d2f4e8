import Foundation
import NoiseCarrier
import Testing
import TransportKit

@testable import TunnelCarrier

/// What Swift and Python have written of the door's wire, read here; `Peers/test_door.py` reads both halves there (R164).
@Suite struct DoorVectorTests {
    private let file: DoorVectors

    init() throws {
        // With this in the environment the half that is made here goes to a file, for `Peers/door_vectors.py` to take up.
        if let path = ProcessInfo.processInfo.environment["DOOR_WIRE_OUT"] {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            try encoder.encode(DoorVectors.make()).write(to: URL(filePath: path))
        }
        file = try DoorVectors.read()
    }

    @Test func `Swift still makes its half`() throws {
        let half = try DoorVectors.make()
        #expect(half.identities == file.swiftIdentities)
        #expect(half.vectors == file.swiftVectors)
        #expect(half.vectors.count > 300)
    }

    @Test func `What either side made reads alike`() throws {
        #expect(file.pythonVectors.count > 250)
        for vector in file.pythonVectors + file.swiftVectors {
            let way = try #require(DoorWay(rawValue: vector.way))
            let read = DoorVectors.Vector(
                vector.name, vector.reads, way, Bytes(packed: vector.hex), isDatagram: vector.datagram ?? false)
            #expect(read == vector)
        }
    }

    @Test func `Every fault is among the vectors`() {
        let faults = Set(file.pythonVectors.compactMap(\.error?.fault))
        #expect(faults == Set(DoorWireError.Fault.allCases.map(\.rawValue)))
    }

    // R88, R95.
    @Test func `Ids and hashes are those of Python`() throws {
        #expect(file.pythonIdentities.count == 4)
        for identity in file.pythonIdentities {
            let key = try #require(StaticPublicKey(Bytes(packed: identity.key)))
            #expect(DoorVectors.Identity(key: key, code: Bytes(packed: identity.code)) == identity)
            let home = try #require(HomeID(identity.home))
            #expect(home == HomeID(of: key))
            #expect(HomeID(Bytes(packed: identity.homeBytes)) == home)
            #expect(DeviceID(identity.device) == DeviceID(of: key))
        }
    }
}
