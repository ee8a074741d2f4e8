import Testing
import TransportKit

@testable import QUICTransport

@Suite struct HandshakeGuardTests {
    private func check(
        _ bytes: [UInt8], _ guardian: inout HandshakeGuard, _ level: HandshakeGuard.Level, piece: Int
    ) -> UInt8? {
        var start = 0
        while start < bytes.count {
            let end = min(start + piece, bytes.count)
            if let alert = Array(bytes[start..<end]).withUnsafeBytes({ guardian.check($0, at: level) }) { return alert }
            start = end
        }
        return nil
    }

    private func message(_ type: UInt8, _ count: Int) -> [UInt8] {
        [type, UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255)]
            + [UInt8](repeating: 24, count: count)
    }

    @Test(arguments: [1, 2, 3, 5, 1000])
    func `Tickets pass, and a KeyUpdate behind one does not`(piece: Int) {
        var client = HandshakeGuard(isServer: false)
        // Its body is full of the forbidden number: boundaries are followed, not bytes.
        #expect(check(message(4, 300) + message(4, 7), &client, .application, piece: piece) == nil)
        #expect(check(message(24, 1), &client, .application, piece: piece) == 10)
    }

    @Test(arguments: [1, 2, 4, 5, 6])
    func `A KeyUpdate is refused wherever it is cut`(piece: Int) {
        for isServer in [true, false] {
            var guardian = HandshakeGuard(isServer: isServer)
            #expect(check(message(24, 1), &guardian, .application, piece: piece) == 10)
            var early = HandshakeGuard(isServer: isServer)
            #expect(check(message(24, 1), &early, .handshake, piece: piece) == 10)
        }
    }

    @Test func `A server takes nothing after the handshake`() {
        for type in UInt8.min...UInt8.max {
            var server = HandshakeGuard(isServer: true)
            #expect(check(message(type, 4), &server, .application, piece: 3) == 10)
        }
    }

    @Test func `A client takes nothing but tickets after the handshake`() {
        // 13 would ask for a certificate (RFC 9001 §4.4 forbids it).
        for type in UInt8.min...UInt8.max where type != 4 {
            var client = HandshakeGuard(isServer: false)
            #expect(check(message(type, 4), &client, .application, piece: 3) == 10)
        }
    }

    @Test func `Nothing follows Finished at its level`() {
        var client = HandshakeGuard(isServer: false)
        let flight = message(8, 50) + message(11, 900) + message(15, 70) + message(20, 32)
        #expect(check(flight, &client, .handshake, piece: 64) == nil)
        #expect(check(message(8, 1), &client, .handshake, piece: 64) == 10)
    }

    // GnuTLS 3.7 makes the keys of early data a second time, which ngtcp2 answers with the end of the process.
    @Test(arguments: [1, 2, 5, 33, 1000])
    func `A HelloRetryRequest is refused by a client that has sent early data`(piece: Int) {
        var retry = message(2, 80)
        retry.replaceSubrange(4..<4 + HandshakeGuard.retryBeginning.count, with: HandshakeGuard.retryBeginning)
        var early = HandshakeGuard(isServer: false)
        early.refusesRetry = true
        #expect(check(retry, &early, .initial, piece: piece) == 10)
        var late = HandshakeGuard(isServer: false)
        #expect(check(retry + message(2, 80), &late, .initial, piece: piece) == nil)
        #expect(late.hasRetried)
        retry[37] ^= 1
        var other = HandshakeGuard(isServer: false)
        other.refusesRetry = true
        #expect(check(retry, &other, .initial, piece: piece) == nil)
        #expect(!other.hasRetried)
    }

    @Test func `A message of absurd length is refused`() {
        var client = HandshakeGuard(isServer: false)
        #expect(check([11, 0xff, 0xff, 0xff], &client, .handshake, piece: 4) == 10)
    }
}
