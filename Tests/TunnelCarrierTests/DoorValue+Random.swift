import NoiseCarrier
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

extension DoorValue {
    /// Any value that may be said, and in which direction.
    static func random(using random: inout SeededGenerator) -> (DoorValue, DoorWay) {
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1: message(&random)
        case 2, 3: control(&random)
        case 4:
            (
                .clientHello(
                    ClientHello(
                        home: HomeID(of: .random(&random)), pair: Bool.random(using: &random) ? .random(&random) : nil,
                        tun: Bool.random(using: &random)
                            ? TunnelFrame(.begin, session: .random(&random), payload: .random(1...300, &random)) : nil,
                        window: window(&random))), .clientToDoor
            )
        case 5:
            (
                .clientWelcome(
                    ClientWelcome(
                        window: window(&random), box: Bool.random(using: &random) ? .random(&random) : nil)),
                .doorToClient
            )
        case 6:
            (.boxHello(BoxHello(window: window(&random), capabilities: .random(&random))), .boxToDoor)
        case _:
            (.boxWelcome(BoxWelcome(window: window(&random))), .doorToBox)
        }
    }

    private static func message(_ random: inout SeededGenerator) -> (DoorValue, DoorWay) {
        var way = DoorWay.allCases[Int.random(in: 0..<4, using: &random)]
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return (.message(.handshake(.random(1...300, &random))), way)
        case 1: return (.message(.sealed(.random(25...300, &random))), way)
        case _:
            let kind = TunnelFrame.Kind.allCases[Int.random(in: 0..<4, using: &random)]
            if kind == .begin { way = way.isBoxLeg ? .doorToBox : .clientToDoor }
            let shortest = kind == .control ? 0 : 1
            let frame = TunnelFrame(
                kind, device: way.isBoxLeg ? DeviceID(of: .random(&random)) : nil, session: .random(&random),
                payload: .random(shortest...300, &random))
            return (.message(.frame(frame)), way)
        }
    }

    private static func control(_ random: inout SeededGenerator) -> (DoorValue, DoorWay) {
        let isBox = Bool.random(using: &random)
        let nonce = UInt64.random(in: 0 ... .max, using: &random)
        let (control, way): (DoorControl, DoorWay) =
            switch Int.random(in: 0..<12, using: &random) {
            case 0: (.enter, .clientToDoor)
            case 1: (.entered, .doorToClient)
            case 2: (.box(Bool.random(using: &random) ? .random(&random) : nil), .doorToClient)
            case 3: (.roster(keys(&random), more: isBox), .boxToDoor)
            case 4: (.linked, .doorToBox)
            case 5: (.admit(keys(&random)), .boxToDoor)
            case 6: (.revoke(keys(&random)), .boxToDoor)
            case 7: (.expect(.random(&random), seconds: .random(in: 1...600, using: &random)), .boxToDoor)
            case 8: (.forget(.random(&random)), .boxToDoor)
            case 9: (.check(nonce: nonce), isBox ? .boxToDoor : .clientToDoor)
            case 10: (.here(nonce: nonce), isBox ? .doorToBox : .doorToClient)
            case _:
                (
                    .credit(
                        device: isBox ? DeviceID(of: .random(&random)) : nil, session: .random(&random),
                        total: .random(in: 0...Varint.max, using: &random)), isBox ? .boxToDoor : .doorToClient
                )
            }
        return (.control(control), way)
    }

    private static func window(_ random: inout SeededGenerator) -> UInt32 {
        .random(in: DoorLimits.window, using: &random)
    }

    private static func keys(_ random: inout SeededGenerator) -> DeviceKeys {
        DeviceKeys((0..<Int.random(in: 0...20, using: &random)).map { _ in StaticPublicKey.random(&random) })
    }
}

extension Bytes {
    static func random(_ counts: ClosedRange<Int>, _ random: inout SeededGenerator) -> Bytes {
        let count = Int.random(in: counts, using: &random)
        return Bytes((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    }

    /// The bytes with one random change.
    func mutated(using random: inout SeededGenerator) -> Bytes {
        var bytes = Array(self)
        let at = bytes.isEmpty ? 0 : Int.random(in: bytes.indices, using: &random)
        let byte = UInt8.random(in: 0...255, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0 where !bytes.isEmpty: bytes[at] ^= 1 << (byte & 7)
        case 1: bytes.removeSubrange(at...)
        case 2 where !bytes.isEmpty: bytes.remove(at: at)
        case 3: bytes.insert(byte, at: at)
        case _: bytes += bytes[at...].prefix(20)
        }
        return Bytes(bytes)
    }
}

extension StaticPublicKey {
    fileprivate static func random(_ random: inout SeededGenerator) -> StaticPublicKey {
        guard let key = StaticPublicKey(Bytes.random(32...32, &random)) else {
            preconditionFailure("32 bytes are a key")
        }
        return key
    }
}

extension PairingHash {
    fileprivate static func random(_ random: inout SeededGenerator) -> PairingHash {
        guard let hash = PairingHash(Bytes.random(32...32, &random)) else { preconditionFailure("32 bytes are a hash") }
        return hash
    }
}

extension TunnelSessionID {
    fileprivate static func random(_ random: inout SeededGenerator) -> TunnelSessionID {
        TunnelSessionID(rawValue: .random(in: 0 ... .max, using: &random))
    }
}

extension BoxCapabilities {
    fileprivate static func random(_ random: inout SeededGenerator) -> BoxCapabilities {
        let names = ["tun", "mux.1", "a", "b-c", "0"].filter { _ in Bool.random(using: &random) }
        guard let set = BoxCapabilities(names) else { preconditionFailure("the names are usable") }
        return set
    }
}
