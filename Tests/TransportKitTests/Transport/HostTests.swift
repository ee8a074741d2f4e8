import Testing
import TransportKit

@Suite struct HostTests {
    @Test(arguments: [
        ("example.com", "example.com"), ("EXAMPLE.com.", "example.com"), ("localhost", "localhost"),
        ("a_b.example", "a_b.example"), ("xn--bcher-kva.example", "xn--bcher-kva.example"), ("1a", "1a"),
        ("127.0.0.1", "127.0.0.1"), ("255.255.255.255", "255.255.255.255"),
        ("::1", "[::1]"), ("[::1]", "[::1]"), ("[2001:DB8::0:1]", "[2001:db8::1]"),
        ("fe80::1%eth0", "[fe80::1%eth0]"), ("[fe80::1%25eth0.7]", "[fe80::1%eth0.7]"), ("fe80::1%25", "[fe80::1%25]"),
        ("::ffff:192.0.2.1", "[::ffff:192.0.2.1]"),
        (String(repeating: "a", count: 63) + ".b", String(repeating: "a", count: 63) + ".b"),
    ])
    func `A host is read and written in its normal form`(text: String, normal: String) throws {
        #expect(try #require(Host(text)).description == normal)
    }

    @Test(arguments: [
        "", ".", "..", "a..b", ".a", "-a.example", "a-.example", "a b", "a/b", "bücher.example", "a%b", "a:b",
        "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.04", "1.2.3.+4", "1.2.3.", "0x7f000001", "example.0X1f", "a.1",
        "[::1", "::1]", "[]", "[1.2.3.4]", "[example.com]", ":", ":::", "1::2::3", "12345::", "::g", "::+1", "::1%",
        "::1%a/b", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1.2.3", "::1.2.3.4.5", ":1.2.3.4",
        "1.2.3.4::", "1:2:3:4:5:6:7:1.2.3.4", "a\u{0}b", "é", "\u{301}",
        String(repeating: "a", count: 64), String(repeating: "a.", count: 127) + "b",
    ])
    func `What is neither a name nor an address is no host`(text: String) {
        #expect(Host(text) == nil)
    }

    @Test func `Only an address is a literal, and its bare form has no brackets`() throws {
        let name = try #require(Host("example.com"))
        let four = try #require(Host("192.0.2.1"))
        let six = try #require(Host("[fe80::1%eth0]"))
        #expect([name, four, six].map(\.isLiteral) == [false, true, true])
        #expect([name, four, six].map(\.bare) == ["example.com", "192.0.2.1", "fe80::1%eth0"])
    }
}

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("0:0:0:0:0:0:0:0", "::"), ("::", "::"), ("1::", "1::"), ("::1", "::1"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("ABCD::EF", "abcd::ef"), ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
        ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
    ])
    func `IPv6 is written as RFC 5952 says`(text: String, normal: String) throws {
        let address = try #require(IPv6Address(text))
        #expect(address.description == normal)
        #expect(IPv6Address(normal) == address)
    }

    @Test func `An address with a port is written as a URL has it`() throws {
        #expect("\(SocketAddress.loopback(port: 80))" == "127.0.0.1:80")
        let six = SocketAddress(.ipv6(.loopback, scopeID: 0), port: 443)
        #expect("\(six)" == "[::1]:443")
        #expect(six.isIPv6 && !SocketAddress.loopback().isIPv6)
        #expect("\(SocketAddress(.ipv6(.loopback, scopeID: 3), port: 1))" == "[::1%3]:1")
    }
}
