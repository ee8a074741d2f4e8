import Testing
import TransportKit
import TransportTLS

/// What a hostile or mistaken peer can send: an error each time, never a trap.
struct BadInputTests {
    let authority: Authority

    init() throws { authority = try Authority() }

    @Test func `a client that speaks HTTP on a TLS port is told apart`() throws {
        let pair = try TLSPair(authority.trusting, authority.server())
        pair.server.feed(Bytes("GET / HTTP/1.1\r\nHost: door.example\r\n\r\n"))
        let error = #expect(throws: TransportError.self) { try pair.server.advanceHandshake() }
        #expect(error?.code == .handshakeFailed)
        #expect(error?.message == "the client does not speak TLS on this port")
    }

    @Test func `a service that answers plain HTTP is told apart`() throws {
        let pair = try TLSPair(authority.trusting, authority.server())
        _ = try pair.client.advanceHandshake()
        pair.client.feed(Bytes("HTTP/1.1 400 Bad Request\r\n\r\n"))
        let error = #expect(throws: TransportError.self) { try pair.client.advanceHandshake() }
        #expect(error?.message == "the service does not speak TLS on this port")
        // It stays that way.
        let again = #expect(throws: TransportError.self) { try pair.client.advanceHandshake() }
        #expect(again == error)
    }

    @Test func `random bytes fail or wait, at any length`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = Seeded(state: seed)
        let server = try authority.server()
        for round in 0..<300 {
            let pair = try TLSPair(authority.trusting, server)
            _ = try pair.client.advanceHandshake()
            var bytes = Bytes(
                (0..<Int.random(in: 1...2000, using: &generator)).map { _ in generator.next() }.map(
                    UInt8.init(truncatingIfNeeded:)))
            // Half of them look like a handshake record.
            if round % 2 == 0 { bytes = Bytes([22, 3, 3, 1, 0, 1 + UInt8(round % 3)]) + bytes }
            for end in [pair.client, pair.server] {
                end.feed(bytes)
                end.endInput()
                let error = #expect(throws: TransportError.self, "seed \(seed), round \(round)") {
                    _ = try end.advanceHandshake()
                }
                #expect(error?.message.isEmpty == false)
            }
        }
    }

    @Test func `a handshake with one byte changed never opens with the wrong peer and never traps`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = Seeded(state: seed)
        let server = try authority.server()
        for round in 0..<300 {
            let pair = try TLSPair(authority.trusting, server)
            _ = try pair.client.advanceHandshake()
            pair.move(pair.client, to: pair.server)
            _ = try pair.server.advanceHandshake()
            var flight = pair.server.takeOutput()
            let place = try #require(flight.placesThatCount.randomElement(using: &generator))
            flight[place] ^= UInt8(1 << Int.random(in: 0..<8, using: &generator))
            pair.client.feed(flight)
            pair.client.endInput()
            #expect(throws: TransportError.self, "seed \(seed), round \(round), byte \(place)") {
                // The flight ends with tickets, which are read like data.
                if try pair.client.advanceHandshake() == .done { _ = try pair.client.takePlaintext() }
            }
        }
    }

    @Test func `a changed record ends the stream, and the peer is told`() throws {
        let pair = try TLSPair(authority.trusting, authority.server())
        _ = pair.handshake()
        try Bytes("hello").withUnsafeBytes { try pair.client.write($0) }
        var wire = pair.client.takeOutput()
        wire[wire.count - 1] ^= 1
        pair.server.feed(wire)
        let error = #expect(throws: TransportError.self) { try pair.server.takePlaintext() }
        #expect(error?.code == .protocolViolation)
        #expect(error?.number == 20)
        pair.move(pair.server, to: pair.client)
        let told = #expect(throws: TransportError.self) { try pair.client.takePlaintext() }
        #expect(told?.code == .protocolViolation)
        #expect(told?.number == 20)
        #expect(told?.message == "the service ended TLS with the alert 20, bad_record_mac")
    }

    @Test func `bytes without an end before the handshake do not pile up`() throws {
        let pair = try TLSPair(authority.trusting, authority.server())
        // A handshake message that announces 16 MiB.
        pair.server.feed([22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff])
        let filler = Bytes(repeating: 0, count: 16_384 - 4)
        var failure: TransportError?
        var fed = 0
        while failure == nil, fed < 1 << 20 {
            do throws(TransportError) {
                pair.server.feed(fed == 0 ? filler : Bytes([22, 3, 1, 0x40, 0]) + Bytes(repeating: 0, count: 16_384))
                fed += 16_384
                _ = try pair.server.advanceHandshake()
            } catch {
                failure = error
            }
        }
        #expect(failure != nil, "accepted \(fed) bytes of one message")
    }

    /// Hellos of OpenSSL 3.0, as a client that allows one version only.
    static let hello12 =
        "160301009e0100009a0303daa4ff94b4487912365240daeeda2766568557476b6765482f9f51e75fbebf2600000ac02cc030c02bc02f00"
        + "ff0100006700000011000f00000c646f6f722e6578616d706c65000b000403000102000a000c000a001d0017001e001900180023000000"
        + "16000000170000000d002a0028040305030603080708080809080a080b080408050806040105010601030303010302040205020602"
    static let hello11 =
        "160301009401000090030272d82c0192eaa1f933171e42ba80bb0f853f1b316614ba7bb99df4faa5c5ee3c00002ec00ac0140039003800"
        + "880087c019003a0089c009c0130033003200450044c0180034004600350084002f004100ff0100003900000011000f00000c646f6f722e"
        + "6578616d706c65000b000403000102000a000c000a001d0017001e00190018002300000016000000170000"

    @Test func `TLS 1 point 2 is answered and older is refused`() throws {
        // R33
        let modern = try TLSPair(authority.trusting, authority.server()).server
        modern.feed(Bytes(hex: Self.hello12))
        #expect(try modern.advanceHandshake() == .needsInput)
        let answer = modern.takeOutput()
        // A ServerHello of TLS 1.2 that is followed by the certificate in the clear.
        #expect(answer.prefix(3) == [22, 3, 3])
        #expect(answer.contains("door.example"))

        let old = try TLSPair(authority.trusting, authority.server()).server
        old.feed(Bytes(hex: Self.hello11))
        let error = #expect(throws: TransportError.self) { try old.advanceHandshake() }
        #expect(error?.code == .noCommonProtocol)
        #expect(Array(old.takeOutput()) == [21, 3, 3, 0, 2, 2, 70], "protocol_version")
    }

    @Test func `a QUIC session takes TLS 1 point 3 alone and insists on a protocol`() throws {
        // RFC 9001 §4.2, §8.1
        let server = try authority.server()
        let old = TLSStream(try TLSSession.server(server, protocols: [WireNames.alpnPeer], forQUIC: true))
        old.feed(Bytes(hex: Self.hello12))
        let version = #expect(throws: TransportError.self) { try old.advanceHandshake() }
        // Its ciphers are all of older versions, so that is what GnuTLS misses first.
        #expect(version?.code == .handshakeFailed)

        let client = try TLSClientCredentials(authority.trusting, tickets: nil)
        for (offered, isAccepted) in [([], false), (["other"], false), ([WireNames.alpnPeer], true)] {
            let pair = TLSPair(
                client: try TLSSession.client(
                    client, host: try #require(Host("door.example")), protocols: offered, forQUIC: true),
                server: try TLSSession.server(server, protocols: [WireNames.alpnPeer], forQUIC: true))
            let failures = pair.handshake()
            #expect(failures.server?.code == (isAccepted ? nil : .noCommonProtocol))
            #expect(failures.client?.code == (isAccepted ? nil : .noCommonProtocol))
            if isAccepted { #expect(pair.server.session.negotiatedProtocol == WireNames.alpnPeer) }
        }
    }

    @Test func `every alert has a sentence`() {
        for number in UInt8.min ... .max {
            for role in [TLSRole.client, .server] {
                for established in [false, true] {
                    let error = TransportError(peerAlert: number, role: role, established: established)
                    #expect(error.number == UInt64(number))
                    #expect(error.message.contains("\(number)"))
                    #expect(!error.message.contains("GNUTLS"))
                }
            }
        }
    }
}

extension Bytes {
    /// Reads hexadecimal digits; others are skipped.
    init(hex: String) {
        let digits = hex.compactMap(\.hexDigitValue)
        self.init(stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }

    /// All places in a flight of TLS records but the records' versions, which count for nothing (RFC 8446 §5.1).
    var placesThatCount: [Int] {
        var places: [Int] = []
        var start = 0
        while start + 5 <= count {
            let end = start + 5 + Int(self[start + 3]) << 8 + Int(self[start + 4])
            places += [start] + Array(start + 3..<end)
            start = end
        }
        return places
    }

    static func + (left: Bytes, right: Bytes) -> Bytes {
        var sum = left
        sum.append(contentsOf: right)
        return sum
    }
}
