import Testing
import TransportHost
import TransportKit

/// The head of a forwarded connection's stream, docs/protocol.md §7.
@Suite struct ForwardHeaderTests {
    let address = TCPEndpoint(host: .ipv4(.loopback), port: 9001)

    /// Feeds `bytes` in pieces of `size` and returns what came out and what was left over.
    func read(_ bytes: Bytes, in size: Int) throws -> (String?, Bytes) {
        var reader = ForwardHeader.RequestReader()
        var rest = bytes
        while !rest.isEmpty {
            reader.feed(rest.takeFirst(min(size, rest.count)))
            if let text = try reader.next() {
                var left = reader.rest
                left.append(contentsOf: rest)
                return (text, left)
            }
        }
        return (nil, reader.rest)
    }

    @Test func `The address is written as the page says`() {
        let expected = Bytes([20] + Array("tcp://127.0.0.1:9001".utf8))
        #expect(ForwardHeader.request(address) == expected)
    }

    @Test(arguments: [1, 2, 7, 1000])
    func `An address and what follows it come out whole, however they arrived`(size: Int) throws {
        var bytes = ForwardHeader.request(address)
        bytes.append(contentsOf: Bytes("GET / HTTP/1.1"))
        let (text, rest) = try read(bytes, in: size)
        #expect(text == "tcp://127.0.0.1:9001")
        #expect(rest == Bytes("GET / HTTP/1.1"))
    }

    @Test func `Any form of the length is read`() throws {
        let bytes = Bytes([0x80, 0, 0, 20] + Array("tcp://127.0.0.1:9001".utf8))
        #expect(try read(bytes, in: 3).0 == "tcp://127.0.0.1:9001")
    }

    @Test func `A length past the limit is refused before anything is kept`() throws {
        var bytes = Bytes()
        Varint.append(1 << 40, to: &bytes)
        #expect(throws: ForwardHeader.Malformed.self) { try read(bytes, in: 1) }
        bytes = Bytes()
        Varint.append(4097, to: &bytes)
        #expect(throws: ForwardHeader.Malformed.self) { try read(bytes, in: 1) }
    }

    @Test func `An address that is no UTF-8 is refused`() {
        #expect(throws: ForwardHeader.Malformed.self) { try read(Bytes([2, 0xc3, 0x28]), in: 1) }
    }

    @Test(arguments: [1, 3, 1000])
    func `An answer and what follows it come out whole`(size: Int) throws {
        for refusal in [nil, ForwardHeader.Refusal(.nobodyThere, "nobody listens"), .init(.refused, "")] {
            var bytes = ForwardHeader.answer(refusal)
            bytes.append(contentsOf: Bytes("xyz"))
            var reader = ForwardHeader.AnswerReader()
            var answer: ForwardHeader.AnswerReader.Answer?
            while answer == nil, !bytes.isEmpty {
                reader.feed(bytes.takeFirst(min(size, bytes.count)))
                answer = try reader.next()
            }
            var rest = reader.rest
            rest.append(contentsOf: bytes)
            #expect(answer == refusal.map { .refused($0) } ?? .open)
            #expect(rest == Bytes("xyz"))
        }
    }

    @Test func `An open answer is two zero bytes`() {
        #expect(ForwardHeader.answer(nil) == Bytes([0, 0]))
    }

    @Test func `A long reason is cut at a character, and a longer one is refused`() throws {
        let long = String(repeating: "ä", count: 2000)
        var reader = ForwardHeader.AnswerReader()
        reader.feed(ForwardHeader.answer(.init(.refused, long)))
        #expect(try reader.next() == .refused(.init(.refused, String(repeating: "ä", count: 512))))
        var bytes = Bytes([0x40, 0x64])
        Varint.append(1025, to: &bytes)
        var second = ForwardHeader.AnswerReader()
        second.feed(bytes)
        #expect(throws: ForwardHeader.Malformed.self) { try second.next() }
    }

    @Test(arguments: [
        ("tcp://127.0.0.1:1", "tcp://127.0.0.1:1"), ("TCP://Example.Com.:80", "tcp://example.com:80"),
        ("tcp://[::1]:65535", "tcp://[::1]:65535"),
    ])
    func `An address is read and written in one form`(text: String, expected: String) throws {
        #expect(try TCPEndpoint(text).description == expected)
    }

    @Test(arguments: [
        "", "tcp://", "tcp://a", "tcp://a:", "tcp://a:0", "tcp://a:65536", "tcp://a:1/", "tcp://a:1?x", "tcp://u@a:1",
        "http://a:1", "tcp://::1:80", "tcp://a b:1", "tcp://127.1:80",
    ])
    func `What is no address is refused`(text: String) {
        #expect(throws: ServiceURL.InvalidURL.self) { try TCPEndpoint(text) }
    }
}
