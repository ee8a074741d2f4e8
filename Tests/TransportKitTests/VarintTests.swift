import Testing
import TransportKit

@Suite struct VarintTests {
    @Test(
        arguments: [(37, [0x25]), (15_293, [0x7b, 0xbd]), (494_878_333, [0x9d, 0x7f, 0x3e, 0x7d])]
            as [(UInt64, [UInt8])])
    func `Samples of RFC 9000 A.1 round-trip`(value: UInt64, wire: [UInt8]) throws {
        var bytes = Bytes()
        Varint.append(value, to: &bytes)
        #expect(bytes == Bytes(wire))
        let read = try #require(Varint.read(from: bytes))
        #expect(read.value == value)
        #expect(read.length == wire.count)
    }
}
