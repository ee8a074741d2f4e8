import Testing
import TransportKit
import TransportKitTesting

@testable import TransportTLS

/// What a service says of its tickets, and what it remembers of the early data that came with them.
@Suite struct TicketTermsTests {
    /// A NewSessionTicket with the given extensions.
    private func message(_ extensions: [UInt8]) -> [UInt8] {
        [0, 0, 0x54, 0x60] + [1, 2, 3, 4] + [2, 9, 9] + [0, 3, 7, 7, 7] + [0, UInt8(extensions.count)] + extensions
    }

    @Test func `A ticket's lifetime and bound are read`() {
        #expect(TLSTicket.Terms(message([]))?.lifetimeSeconds == 21_600)
        #expect(TLSTicket.Terms(message([]))?.earlyDataBytes == nil)
        let early = message([0xfa, 0xfa, 0, 1, 0, 0, 42, 0, 4, 0xff, 0xff, 0xff, 0xff])
        #expect(TLSTicket.Terms(early)?.earlyDataBytes == TLSTicket.Terms.earlyDataOfQUIC)
        #expect(TLSTicket.Terms(message([0, 42, 0, 4, 0, 0, 64, 0]))?.earlyDataBytes == 16_384)
    }

    @Test func `A message that is cut short or too long has no terms`() {
        let whole = message([0, 42, 0, 4, 0xff, 0xff, 0xff, 0xff])
        for count in 0..<whole.count { #expect(TLSTicket.Terms(Array(whole.prefix(count))) == nil) }
        #expect(TLSTicket.Terms(whole + [0]) == nil)
        #expect(TLSTicket.Terms(message([0, 42, 0, 3, 0, 0, 64])) == nil)
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `Nothing that a peer sends traps`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<5000 {
            var bytes = message([0, 42, 0, 4, 0xff, 0xff, 0xff, 0xff])
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = TLSTicket.Terms(bytes)
        }
    }

    @Test func `A record takes each ClientHello once, and no more than it has room for`() throws {
        let record = try #require(EarlyDataRecord(seconds: 60, limit: 3))
        func add(_ number: UInt8, window: UInt8 = 0) -> Bool {
            let key = [UInt8](repeating: window, count: 12) + [UInt8](repeating: number, count: 32)
            return key.withUnsafeBytes { record.add($0) } == 0
        }
        #expect(add(1) && add(2))
        // It is the same in every window of the library's.
        #expect(!add(1) && !add(2, window: 9))
        #expect(!record.isFull)
        #expect(add(3) && record.isFull)
        #expect(!add(4) && !add(3))
        #expect([UInt8](repeating: 0, count: 20).withUnsafeBytes { record.add($0) } != 0)
    }
}
