import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// Whatever a peer sends, the door lives on, and nothing is left once the links have ended.
@Suite struct DoorFuzzTests {
    @Test func `Random, changed, cut, repeated and reordered messages in every phase trap nothing`() throws {
        var random = SeededGenerator.announced()
        let world = DoorWorld()
        var closed = 0
        for _ in 0..<60 {
            let box = ScriptedBox(world)
            let client = ScriptedClient(world, home: box.home)
            let parties: [ScriptedLink] = [box, client]
            _ = try box.come([client.key.publicKey])
            _ = try client.come(tun: .random())
            for party in parties where Bool.random(using: &random) {
                for _ in 0..<Int.random(in: 0...2, using: &random) { _ = world.take(party.link) }
                party.end()
                if party === box { _ = try box.dial() } else { _ = try client.dial(tun: .random()) }
            }
            let sessions = (0..<3).map { _ in TunnelSessionID.random() }
            for _ in 0..<60 {
                let party = Bool.random(using: &random) ? parties[0] : parties[1]
                let device = party.leg == .box ? client.device : nil
                let session = sessions[Int.random(in: 0..<3, using: &random)]
                switch Int.random(in: 0..<8, using: &random) {
                case 0: party.send(.random(0...80, &random), delivery: .random(&random))
                case 1: party.send(party.message1.mutated(using: &random))
                case 2:
                    // Well sealed, and nonsense inside.
                    try party.say(.random(device, session, &random))
                case 3:
                    let frame = TunnelFrame(
                        .control, device: device, session: session, payload: .random(0...40, &random))
                    party.send(frame.encoded().mutated(using: &random), delivery: .random(&random))
                case 4: world.advance(.milliseconds(.random(in: 0...400, using: &random)))
                case 5: party.hear()
                case _:
                    let kind = TunnelFrame.Kind.allCases[Int.random(in: 0..<4, using: &random)]
                    if party.leg == .box, kind == .begin { continue }
                    party.send(
                        TunnelFrame(kind, device: device, session: session, payload: .random(1...900, &random)))
                }
            }
            closed += parties.count { $0.close != nil }
            for party in parties { party.end() }
        }
        #expect(closed > 30)
        world.advance(.seconds(1))
        #expect(world.isEmpty)
    }
}

extension Delivery {
    fileprivate static func random(_ random: inout SeededGenerator) -> Delivery {
        allCases[Int.random(in: 0..<3, using: &random)]
    }
}

extension DoorControl {
    /// Something that somebody might say, at the right time or not.
    fileprivate static func random(
        _ device: DeviceID?, _ session: TunnelSessionID, _ random: inout SeededGenerator
    ) -> DoorControl {
        let keys = DeviceKeys([StaticPrivateKey().publicKey])
        let number = UInt64.random(in: 0...Varint.max, using: &random)
        return switch Int.random(in: 0..<8, using: &random) {
        case 0: .enter
        case 1: .credit(device: device, session: session, total: number)
        case 2: .check(nonce: number)
        case 3: .roster(keys, more: Bool.random(using: &random))
        case 4: .admit(keys)
        case 5: .revoke(keys)
        case 6: .entered
        case _: .linked
        }
    }
}

extension Bytes {
    fileprivate static func random(_ counts: ClosedRange<Int>, _ random: inout SeededGenerator) -> Bytes {
        let count = Int.random(in: counts, using: &random)
        return Bytes((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    }

    /// The bytes with one random change.
    fileprivate func mutated(using random: inout SeededGenerator) -> Bytes {
        var bytes = Array(self)
        guard !bytes.isEmpty else { return self }
        let at = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes.removeSubrange(at...)
        case 2: bytes.remove(at: at)
        case _: bytes.insert(.random(in: 0...255, using: &random), at: at)
        }
        return Bytes(bytes)
    }
}
