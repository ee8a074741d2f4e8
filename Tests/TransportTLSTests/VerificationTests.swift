import Testing
import TransportKit
import TransportTLS

/// One check of the peer, with one wording, for both transports.
struct VerificationTests {
    let authority: Authority

    init() throws { authority = try Authority() }

    @Test func `a certificate of a trusted issuer for the host is accepted, and its key is known`() throws {
        let files = try authority.issue()
        let pair = try TLSPair(authority.trusting, TLSServerCredentials(ServerSecurity(identity: files)))
        let failures = pair.handshake()
        #expect(failures.client == nil && failures.server == nil)
        #expect(try pair.client.session.peerKey == CertificateHashes(certificateFile: files.certificate).key)
        #expect(pair.server.session.peerKey == nil)
        #expect(pair.client.session.negotiatedProtocol == "http/1.1")
        #expect(pair.server.session.negotiatedProtocol == "http/1.1")
        #expect(pair.client.session.cipherDescription == "TLS1.3 AES-128-GCM")
    }

    @Test func `an expired certificate is named as such, with its end and the local time`() throws {
        let pair = try TLSPair(authority.trusting, authority.server(from: -200_000, to: -100_000))
        let failures = pair.handshake()
        #expect(failures.client?.code == .certificateExpired)
        let message = failures.client?.message ?? ""
        #expect(message.contains("the certificate of door.example expired on 20"), "\(message)")
        #expect(message.contains("UTC here"), "\(message)")
        #expect(failures.client == pair.client.session.verificationFailure)
        // The service learns that it is its certificate that was not liked.
        #expect(failures.server?.code == .handshakeFailed)
        #expect(failures.server?.number == 45, "\(String(describing: failures.server))")
    }

    @Test func `a certificate from the future blames the clock and names both times`() throws {
        // B52
        let pair = try TLSPair(authority.trusting, authority.server(from: 100_000, to: 200_000))
        let failure = pair.handshake().client
        #expect(failure?.code == .certificateNotYetValid)
        let message = failure?.message ?? ""
        #expect(message.hasPrefix("the clock looks wrong: it is 20"), "\(message)")
        #expect(message.contains("UTC here, the certificate is valid from 20"), "\(message)")
    }

    @Test func `a certificate for another host says whom it is for`() throws {
        let pair = try TLSPair(authority.trusting, authority.server(["other.example", "192.0.2.1", "2001:db8::1"]))
        let failure = pair.handshake().client
        #expect(failure?.code == .certificateWrongHost)
        #expect(
            failure?.message
                == "the certificate is for other.example, 192.0.2.1 and 2001:db8::1, not for door.example")
    }

    @Test func `a certificate of an unknown issuer shows its subject and issuer`() throws {
        // B34
        let stranger = try Authority()
        let pair = try TLSPair(stranger.trusting, authority.server())
        let failure = pair.handshake().client
        #expect(failure?.code == .certificateUnknownIssuer)
        #expect(failure?.message.contains("\"CN=door.example\"") == true)
        #expect(failure?.message.contains("\"CN=root.example\"") == true)
    }

    @Test func `the machine's own trust store does not know a test issuer`() throws {
        let pair = try TLSPair(ClientSecurity(), authority.server())
        #expect(pair.handshake().client?.code == .certificateUnknownIssuer)
    }

    @Test(arguments: [CertificateRecipe.Key.rsa(bits: 1024)])
    func `a weak key is refused, whoever has signed it`(key: CertificateRecipe.Key) throws {
        let files = try authority.issue(key: key)
        let server = try TLSServerCredentials(ServerSecurity(identity: files), allowingWeakKey: true)
        let failure = try TLSPair(authority.trusting, server).handshake().client
        #expect(failure?.code == .certificateInvalid)
        #expect(failure?.message.contains("an RSA key of 1024 bits; at least 2048 are needed") == true)
        let pin = try CertificateHashes(certificateFile: files.certificate).key
        let pinned = try TLSPair(ClientSecurity(pins: [pin]), server).handshake().client
        #expect(pinned?.code == .certificateInvalid)
    }

    @Test func `a listener refuses to show a weak key of its own`() throws {
        for key in [CertificateRecipe.Key.rsa(bits: 1024), .ecP192] {
            let files = try authority.issue(key: key)
            let error = #expect(throws: TransportError.self) {
                try TLSServerCredentials(ServerSecurity(identity: files))
            }
            #expect(error?.code == .certificateInvalid)
            #expect(error?.message.contains(files.certificate) == true)
        }
    }

    @Test func `a pinned key or certificate is enough, whatever its name, issuer and dates`() throws {
        // R201
        let files = try authority.issue(["other.example"], from: -200_000, to: -100_000)
        let server = try TLSServerCredentials(ServerSecurity(identity: files))
        let hashes = try CertificateHashes(certificateFile: files.certificate)
        #expect(hashes.key != hashes.certificate)
        for pin in [hashes.key, hashes.certificate] {
            let failures = try TLSPair(ClientSecurity(pins: [pin]), server).handshake()
            #expect(failures.client == nil && failures.server == nil)
        }
    }

    @Test func `a pin that does not match names the key that was shown`() throws {
        let files = try authority.issue()
        let pin = try #require(PublicKeyHash(Bytes(repeating: 7, count: 32)))
        var security = authority.trusting
        security.pins = [pin]
        let failure = try TLSPair(security, TLSServerCredentials(ServerSecurity(identity: files))).handshake().client
        #expect(failure?.code == .pinMismatch)
        let key = try CertificateHashes(certificateFile: files.certificate).key
        #expect(failure?.message == "door.example showed the key \(key), which is not the pinned one")
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "[2001:db8:0::1]"), ("door.example", "DOOR.example."),
    ])
    func `addresses match addresses and names match names in any spelling`(name: String, host: String) throws {
        // B61
        let pair = try TLSPair(authority.trusting, authority.server([name]), host: host)
        let failures = pair.handshake()
        #expect(failures.client == nil && failures.server == nil)
    }

    @Test func `an address is not matched against names, nor asked for by name`() throws {
        // B61
        let server = try authority.server(["door.example"])
        let pair = try TLSPair(authority.trusting, server, host: "192.0.2.1")
        #expect(pair.handshake().client?.code == .certificateWrongHost)
        let named = try TLSPair(authority.trusting, server)
        let literal = try TLSPair(authority.trusting, server, host: "192.0.2.1")
        _ = try named.client.advanceHandshake()
        _ = try literal.client.advanceHandshake()
        #expect(named.client.takeOutput().contains("door.example"))
        #expect(!literal.client.takeOutput().contains("192.0.2.1"))
    }

    @Test func `a server name of one's own works with an address`() throws {
        // B61
        var security = authority.trusting
        security.serverName = "Door.Example."
        let pair = try TLSPair(security, authority.server(), host: "192.0.2.1")
        _ = try pair.client.advanceHandshake()
        let failures = pair.handshake()
        #expect(failures.client == nil && failures.server == nil)
        security.serverName = "not a name"
        #expect(throws: TransportError.self) { try TLSClientCredentials(security) }
    }

    @Test func `a client with a pinned certificate is let in, and its key is known`() throws {
        let identity = try authority.issue(["box.example"])
        let key = try CertificateHashes(certificateFile: identity.certificate).key
        var security = authority.trusting
        security.identity = identity
        let pair = try TLSPair(security, authority.server(clientPins: [key]))
        let failures = pair.handshake()
        #expect(failures.client == nil && failures.server == nil)
        #expect(pair.server.session.peerKey == key)
    }

    @Test func `a client with another certificate is refused, and told so`() throws {
        var security = authority.trusting
        security.identity = try authority.issue(["box.example"])
        let pair = try TLSPair(security, authority.server(clientPins: []))
        let failures = pair.handshake()
        #expect(failures.server?.code == .pinMismatch)
        #expect(failures.server?.message.hasSuffix("which is not one that is let in") == true)
        #expect(failures.client?.code == .clientCertificateRejected)
    }

    @Test func `a client without a certificate is refused where one is asked for`() throws {
        let pin = try #require(PublicKeyHash(Bytes(repeating: 7, count: 32)))
        let pair = try TLSPair(authority.trusting, authority.server(clientPins: [pin]))
        let failures = pair.handshake()
        #expect(failures.server?.code == .certificateInvalid)
        #expect(failures.server?.message == "the client showed no certificate")
        #expect(failures.client?.code == .clientCertificateRejected)
        #expect(failures.client?.number == 116)
    }

    @Test func `ends without a common protocol both say so`() throws {
        // B39
        let pair = try TLSPair(authority.trusting, authority.server(), offering: ["h2"])
        let failures = pair.handshake()
        #expect(failures.server?.code == .noCommonProtocol)
        #expect(failures.client?.code == .noCommonProtocol)
        #expect(failures.client?.number == 120)
    }

    @Test func `the listener's favourite among the common protocols wins`() throws {
        let pair = try TLSPair(
            authority.trusting, authority.server(), offering: ["b", "a", "c"], speaking: ["a", "b"])
        #expect(pair.handshake().client == nil)
        #expect(pair.client.session.negotiatedProtocol == "a")
    }
}

extension Bytes {
    /// Whether the text stands somewhere in it.
    func contains(_ text: String) -> Bool {
        let wanted = Array(text.utf8)
        let all = Array(self)
        return all.indices.contains { all[$0...].starts(with: wanted) }
    }
}
