import Testing
import TransportKit

@Suite struct ServiceURLTests {
    @Test(arguments: [
        ("wss://door.example", "wss://door.example:443/"), ("ws://door.example", "ws://door.example:80/"),
        ("WSS://Door.Example.:8443/v1/app", "wss://door.example:8443/v1/app"),
        ("wss://192.0.2.1:1/", "wss://192.0.2.1:1/"), ("wss://[2001:db8::1]", "wss://[2001:db8::1]:443/"),
        ("wss://[fe80::1%25eth0]:9/x", "wss://[fe80::1%eth0]:9/x"), ("wss://a:0", "wss://a:0/"),
        ("wss://a:65535", "wss://a:65535/"), ("wss://a/x:y@z", "wss://a:443/x:y@z"), ("wss://a//b", "wss://a:443//b"),
    ])
    func `A URL is read and written in its normal form`(text: String, normal: String) throws {
        #expect(try ServiceURL(text).description == normal)
    }

    @Test(arguments: [
        ("door.example", "no scheme"), ("", "no scheme"), ("http://a", "unknown scheme"), ("://a", "unknown scheme"),
        ("wss://", "no valid host"), ("wss:///x", "no valid host"), ("wss://:1", "no valid host"),
        ("wss://a b", "no valid host"), ("wss://2001:db8::1/", "without brackets"), ("wss://[::1", "lacks the bracket"),
        ("wss://[::1]x", "after the bracket"), ("wss://[::1]:", "bad port"), ("wss://a:", "bad port"),
        ("wss://a:65536", "bad port"), ("wss://a:-1", "bad port"), ("wss://a:+1", "bad port"),
        ("wss://a:1x", "bad port"),
        ("wss://user:secret@a", "credentials"), ("wss://a/b c", "bad path"), ("wss://a/#f", "bad path"),
        ("wss://a#f", "bad path"), ("wss://a/\u{7f}", "bad path"), ("wss://a/\r\nx", "bad path"),
        ("wss://a/" + String(repeating: "x", count: 4096), "bad path"),
    ])
    func `A bad URL is refused with what is wrong`(text: String, what: String) throws {
        let error = #expect(throws: ServiceURL.InvalidURL.self) { try ServiceURL(text) }
        #expect(try #require(error).message.contains(what))
        // It may hold a secret, so it is not repeated (B23).
        #expect(error?.description.contains("secret") == false)
    }

    @Test func `A query travels, and is never shown`() throws {
        // R4, R5
        let url = try ServiceURL("wss://a?token=secret&x=?")
        #expect(url.target.path == "/")
        #expect(url.target.query == "token=secret&x=?")
        #expect(url.target.wireForm == "/?token=secret&x=?")
        #expect(url.description == "wss://a:443/?…")
        #expect(try ServiceURL("wss://a/?").target.wireForm == "/?")
    }

    @Test func `A target is at most 4096 bytes and begins with a slash`() {
        #expect(Target("/" + String(repeating: "x", count: 4095)) != nil)
        #expect(Target("/" + String(repeating: "é", count: 2047))?.wireForm.utf8.count == 4095)
        for bad in ["", "x", "?x", "/" + String(repeating: "x", count: 4096), "/a b", "/\t", "/#", "/\u{0}"] {
            #expect(Target(bad) == nil)
        }
        #expect(Target("/") == .root)
    }

    @Test func `The authority leaves out the port of the scheme`() throws {
        #expect(try ServiceURL("wss://a").endpoint.authority == "a")
        #expect(try ServiceURL("wss://[::1]:443").endpoint.authority == "[::1]")
        #expect(try ServiceURL("ws://a:443").endpoint.authority == "a:443")
    }
}

@Suite struct SecurityTests {
    @Test func `A hash is read with and without colons, in either case, and written in one form`() throws {
        let plain = "sha256:" + String(repeating: "0aF1", count: 16)
        let spaced = "SHA256:" + Array(repeating: "0a:f1", count: 16).joined(separator: ":")
        let hash = try #require(PublicKeyHash(plain))
        #expect(PublicKeyHash(spaced) == hash)
        #expect(hash.description == plain.lowercased())
        #expect(PublicKeyHash(hash.description) == hash)
        #expect(hash.bytes.count == 32)
    }

    @Test(arguments: [
        "", "sha256:", "sha1:" + String(repeating: "00", count: 32), "sha256:" + String(repeating: "00", count: 31),
        "sha256:" + String(repeating: "00", count: 33), "sha256:" + String(repeating: "+1", count: 32),
        "sha256:" + String(repeating: "0g", count: 32), "sha256:" + String(repeating: "é", count: 32),
        String(repeating: "00", count: 32),
    ])
    func `What is not a SHA-256 is no hash`(text: String) {
        #expect(PublicKeyHash(text) == nil)
    }

    @Test func `A hash has 32 bytes`() {
        #expect(PublicKeyHash(Bytes(repeating: 1, count: 32)) != nil)
        #expect(PublicKeyHash(Bytes(repeating: 1, count: 31)) == nil)
    }

    @Test func `A claim is taken once`() async {
        let claim = Claim()
        let taken = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 { group.addTask { claim.take() } }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(taken == 1)
        #expect(!Claim.gone.take())
        // Each is its own.
        #expect(Claim().take())
    }
}
