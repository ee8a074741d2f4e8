import Testing
import TransportKit
import TransportTLS

/// Resumption (R26), visible on both ends (R16), and tickets that never go astray (B63).
struct TicketTests {
    let authority: Authority
    let store = TLSTicketStore()

    init() throws { authority = try Authority() }

    /// Opens a session and says whether both ends call it resumed; they must agree.
    private func isResumed(
        _ server: TLSServerCredentials, _ security: ClientSecurity? = nil, host: String = "door.example",
        port: UInt16 = 443, offering: [String] = [WireNames.alpnHTTP], tickets: TLSTicketStore? = nil
    ) throws -> Bool {
        let pair = try TLSPair(
            security ?? authority.trusting, server, host: host, port: port, offering: offering,
            speaking: [WireNames.alpnHTTP, "other"], tickets: tickets ?? store)
        let failures = pair.handshake()
        try #require(failures.client == nil && failures.server == nil)
        #expect(pair.client.session.peerKey != nil, "the key of a resumed peer is known too")
        try #require(pair.client.session.resumed == pair.server.session.resumed)
        return pair.client.session.resumed
    }

    @Test func `a second dial resumes, and so does every one after it`() throws {
        let server = try authority.server()
        #expect(try !isResumed(server))
        #expect(store.count > 0)
        for _ in 0..<5 { #expect(try isResumed(server)) }
    }

    @Test func `pins and addresses resume as well`() throws {
        // R16
        let files = try authority.issue(["192.0.2.1"])
        let server = try TLSServerCredentials(ServerSecurity(identity: files))
        let pinned = ClientSecurity(pins: [try CertificateHashes(certificateFile: files.certificate).key])
        #expect(try !isResumed(server, pinned, host: "192.0.2.1"))
        #expect(try isResumed(server, pinned, host: "192.0.2.1"))
    }

    @Test func `a ticket is good for its destination, protocol and rules alone`() throws {
        let files = try authority.issue(["door.example", "other.example"])
        let server = try TLSServerCredentials(ServerSecurity(identity: files))
        #expect(try !isResumed(server))
        #expect(try !isResumed(server, host: "other.example"))
        #expect(try !isResumed(server, port: 8443))
        #expect(try !isResumed(server, offering: ["other"]))
        var pinned = authority.trusting
        pinned.pins = [try CertificateHashes(certificateFile: files.certificate).key]
        #expect(try !isResumed(server, pinned))
        pinned.pins.append(try #require(PublicKeyHash(Bytes(repeating: 1, count: 32))))
        #expect(try !isResumed(server, pinned))
        var named = authority.trusting
        named.serverName = "other.example"
        #expect(try !isResumed(server, named))
        #expect(try isResumed(server))
    }

    @Test func `a trust file with other contents makes old tickets worthless`() throws {
        let server = try authority.server()
        let path = authority.path("trust.pem")
        let security = ClientSecurity(trust: .file(path))
        try write(authority.rootPEM, to: path)
        #expect(try !isResumed(server, security))
        #expect(try isResumed(server, security))
        try write(authority.rootPEM + "\n" + Authority().rootPEM, to: path)
        #expect(try !isResumed(server, security))
    }

    @Test func `a ticket of one listener is worthless at another, and after its key is gone`() throws {
        let lax = try authority.server()
        #expect(try !isResumed(lax))
        let strict = try authority.server(clientPins: [])
        let pair = try TLSPair(authority.trusting, strict, tickets: store)
        #expect(pair.handshake().server != nil, "it wants a certificate, ticket or not")

        _ = try isResumed(lax)
        #expect(try isResumed(lax))
        lax.forgetTickets()
        #expect(try !isResumed(lax))
    }

    @Test func `a resumed session still knows the client's key`() throws {
        let identity = try authority.issue(["box.example"])
        let key = try CertificateHashes(certificateFile: identity.certificate).key
        var security = authority.trusting
        security.identity = identity
        let server = try authority.server(clientPins: [key])
        #expect(try !isResumed(server, security))
        let pair = try TLSPair(security, server, tickets: store)
        let failures = pair.handshake()
        #expect(failures.client == nil && failures.server == nil)
        #expect(pair.server.session.resumed)
        #expect(pair.server.session.peerKey == key)
    }

    @Test func `without a store every handshake is a full one`() throws {
        let server = try authority.server()
        for _ in 0..<2 {
            let pair = try TLSPair(authority.trusting, server)
            #expect(pair.handshake().client == nil)
            #expect(!pair.client.session.resumed)
        }
    }

    @Test func `a store gives each ticket out once, the latest first, and not after its end`() throws {
        let now = WallTime(seconds: 1_800_000_000)
        let key = try makeKey("door.example")
        for number in UInt8(1)...6 { store.keep([number], for: key, notAfter: now + .seconds(Int64(number))) }
        #expect(store.count == 4)
        #expect(store.take(key, now: now)?.data == [6])
        #expect(store.take(key, now: now + .seconds(4))?.data == [5])
        #expect(store.take(key, now: now + .seconds(4)) == nil)
        #expect(store.count == 0)
    }

    @Test func `a full store forgets the destination used longest ago`() throws {
        let now = WallTime(seconds: 1_800_000_000)
        let small = TLSTicketStore(maxDestinations: 2)
        for name in ["a.example", "b.example", "a.example", "c.example"] {
            small.keep([1], for: try makeKey(name), notAfter: now + .seconds(1))
        }
        #expect(small.take(try makeKey("b.example"), now: now) == nil)
        #expect(small.take(try makeKey("a.example"), now: now) != nil)
        #expect(small.take(try makeKey("c.example"), now: now) != nil)
    }

    private func makeKey(_ host: String) throws -> TLSTicketStore.Key {
        TLSTicketStore.Key(
            host: try #require(Host(host)), port: 443, protocols: [], isQUIC: false, security: ClientSecurity(),
            fingerprint: [])
    }
}
