import NoiseCarrier
import TransportKit

extension FuzzTarget {
    /// A handshake and a session whose peer lies: nothing is taken that the peer did not say, nothing twice, and what the
    /// peer says afterwards is still understood.
    static let noise = FuzzTarget(name: "noise") {
        [
            Bytes([0] + [UInt8](repeating: 7, count: 96)),
            Bytes([1] + [UInt8](repeating: 7, count: 48)),
            // Genuine messages in order, then a flipped bit, a replay, a cut, an old one.
            Bytes([2, 0, 0, 0, 1, 0, 0, 2, 1, 9, 1, 0, 0, 3, 2, 5, 0, 0, 0]),
        ]
    } run: { input in
        switch input.byte() % 3 {
        case 0: try Lies.firstMessage(input.rest())
        case 1: try Lies.secondMessage(input.rest())
        case _: try Lies.messages(&input)
        }
    }
}

private enum Lies {
    private static let box = StaticPrivateKey()
    private static let app = StaticPrivateKey()

    /// R133: whoever does not know the box's key cannot make a message 1.
    static func firstMessage(_ bytes: Bytes) throws {
        if let _ = try? ResponderHandshake(key: box, reading: bytes) {
            throw FuzzTarget.Broken(description: "a message 1 that nobody made was read")
        }
    }

    /// R73: a wrong message 2 is no answer and spoils nothing.
    static func secondMessage(_ bytes: Bytes) throws {
        var handshake = try InitiatorHandshake(key: app, peer: box.publicKey)
        let answer = try ResponderHandshake(key: box, reading: handshake.message1).answer()
        if let _ = try? handshake.finish(reading: bytes) {
            throw FuzzTarget.Broken(description: "a message 2 that nobody made was read")
        }
        _ = try handshake.finish(reading: answer.message2)
    }

    /// The next message of the peer's, whole or spoilt, or an older one again, in any order (R63–R68).
    static func messages(_ input: inout FuzzInput) throws {
        var handshake = try InitiatorHandshake(key: app, peer: box.publicKey)
        let answer = try ResponderHandshake(key: box, reading: handshake.message1).answer()
        var ours = try handshake.finish(reading: answer.message2)
        var theirs = answer.begin()
        var said: [Bytes] = []
        var heard: Set<Int> = []
        for _ in 0..<64 where !input.isEmpty {
            let what = input.byte()
            let index: Int
            if what % 4 < 2 || said.isEmpty {
                said.append(try ours.seal(Bytes("message \(said.count)")))
                index = said.count - 1
            } else {
                index = Int(input.byte()) % said.count
            }
            let genuine = said[index]
            guard what % 2 == 1 else {
                // A copy, since opening may be done in place.
                let opened = try? theirs.open(Bytes(Array(genuine)))
                try demand(opened == nil || !heard.contains(index), "message \(index) was opened twice")
                try demand(opened != nil || heard.contains(index), "message \(index) was refused")
                try demand(opened == nil || opened == Bytes("message \(index)"), "message \(index) changed")
                heard.insert(index)
                continue
            }
            var spoilt = Bytes(Array(genuine.prefix(genuine.count - Int(input.byte()) % 3)))
            let place = Int(input.byte()) % spoilt.count
            spoilt[place] ^= input.byte() | (spoilt.count == genuine.count ? 1 : 0)
            let opened = try? theirs.open(spoilt)
            try demand(opened == nil, "a spoilt message was opened")
        }
    }
}
