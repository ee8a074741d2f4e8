import Testing
import TransportKit

@testable import NoiseCarrier

/// Keys are read and compared, and never shown.
@Suite struct KeyTests {
    @Test func `A key has one text form and is read in two`() throws {
        let key = StaticPrivateKey()
        let text = key.exportText()
        #expect(text.utf8.count == 43)
        #expect(StaticPrivateKey(text) == key)
        let name = "\(key.publicKey)"
        #expect(StaticPublicKey(name) == key.publicKey)
        let hex = key.publicKey.bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        #expect(StaticPublicKey(hex) == key.publicKey)
        #expect(StaticPublicKey(hex.uppercased()) == key.publicKey)
    }

    @Test func `What is no key is refused`() {
        let good = "\(StaticPrivateKey().publicKey)"
        let bad = [
            "", "a", String(good.dropLast()), good + "A", good + "=", " " + good, String(good.dropLast()) + "+",
            String(good.dropLast()) + "\u{e9}", String(repeating: "g", count: 64), String(repeating: "0", count: 63),
            String(repeating: "0", count: 66), String(repeating: "A", count: 42) + "B",
        ]
        for text in bad {
            #expect(StaticPublicKey(text) == nil, "\(text)")
            #expect(StaticPrivateKey(text) == nil, "\(text)")
        }
        for count in [0, 31, 33] {
            #expect(StaticPublicKey(Bytes([UInt8](repeating: 1, count: count))) == nil)
            #expect([UInt8](repeating: 1, count: count).withUnsafeBytes { StaticPrivateKey($0) } == nil)
        }
    }

    @Test func `A private key shows nothing of itself`() throws {
        let key = StaticPrivateKey()
        var dumped = ""
        dump(key, to: &dumped)
        let shown = ["\(key)", String(reflecting: key), dumped, "\([key])", "\(Optional(key) as Any)"]
        let raw = key.withUnsafeBytes { Array($0) }
        for text in shown {
            #expect(text.contains("private key"))
            #expect(!text.contains(key.exportText()))
            #expect(!text.contains("\(raw[0]), \(raw[1])"))
        }
        #expect(Mirror(reflecting: key).children.isEmpty)
    }

    @Test func `Keys are equal where their bytes are`() {
        let key = StaticPrivateKey()
        let copy = key.withUnsafeBytes { StaticPrivateKey($0) }
        #expect(copy == key)
        #expect(copy?.publicKey == key.publicKey)
        #expect(StaticPrivateKey() != key)
        #expect(Set([key.publicKey, key.publicKey, StaticPrivateKey().publicKey]).count == 2)
    }

    @Test func `A secret is wiped on demand and copied only on purpose`() {
        let secret = Secret(count: 32)
        secret.randomize()
        let copy = secret.copy()
        let isCopied = secret.equals(copy)
        secret.wipe()
        let isLeft = secret.equals(copy)
        let isZero = secret.equals(Secret(count: 32))
        let isShort = secret.equals(Secret(count: 16))
        #expect([isCopied, isLeft, isZero, isShort] == [true, false, true, false])
    }
}
