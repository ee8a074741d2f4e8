import Testing
import TransportKit
import WebSocketTransport

/// What a listener makes of a request (B57, RFC 6455 §4.2, RFC 7230).
@Suite struct UpgradeRequestTests {
    static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    static let sound = [
        "Host: here", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: \(key)",
        "Sec-WebSocket-Version: 13",
    ]

    /// The status of the answer, 101 for an upgrade, 0 where more bytes are needed.
    static func status(_ text: String, hasRoute: Bool = true) -> Int {
        var reader = HTTPHeadReader()
        do {
            guard let read = try Bytes(text).withUnsafeBytes({ try reader.take($0) }) else { return 0 }
            switch UpgradeRequest.judge(read.head) {
            case .upgrade: return 101
            case .refused(let answer): return answer.status
            case .plain(let target, _): return HTTPAnswer.plain(target) { _ in hasRoute }.status
            }
        } catch {
            return 400
        }
    }

    static func request(_ fields: [String], line: String = "GET /echo?x=1 HTTP/1.1") -> String {
        ([line] + fields).joined(separator: "\r\n") + "\r\n\r\n"
    }

    static func replacing(_ name: String, _ lines: String...) -> [String] {
        sound.filter { !$0.hasPrefix(name + ":") } + lines
    }

    @Test(arguments: [
        sound,
        replacing("Connection", "Connection: keep-alive, Upgrade"),
        replacing("Connection", "Connection: keep-alive", "Connection: uPGRADE"),
        replacing("Upgrade", "uPgRaDe:   WebSocket  "),
        replacing("Upgrade", "Upgrade: h2c, websocket"),
        replacing("Host", "hOST:\t[::1]:8443"),
        sound + ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"],
        sound + ["Sec-WebSocket-Protocol: chat, tk-mux.1"],
        sound + ["Content-Length: 0", "Cookie: gr\u{fc}n=1", "Origin: https://elsewhere"],
    ])
    func `A sound request is taken, whatever its case and order`(fields: [String]) {
        #expect(Self.status(Self.request(fields)) == 101)
    }

    // The entries before the last are the client's own words.
    @Test func `The last entry of X-Forwarded-For is the proxy's`() throws {
        var reader = HTTPHeadReader()
        let fields = Self.sound + ["X-Forwarded-For: 6.6.6.6, 192.0.2.1", "X-Forwarded-For: 198.51.100.7"]
        let bytes = Bytes(Self.request(fields))
        let read = try #require(try bytes.withUnsafeBytes { try reader.take($0) })
        guard case .upgrade(let request) = UpgradeRequest.judge(read.head) else { Issue.record("no upgrade"); return }
        #expect(request.forwardedFor == "198.51.100.7")
    }

    @Test func `Target and sub-protocols are read from a request`() throws {
        var reader = HTTPHeadReader()
        let fields = Self.sound + ["Sec-WebSocket-Protocol: chat , tk-mux.1", "Sec-WebSocket-Protocol: more"]
        let bytes = Bytes(Self.request(fields) + "glued")
        let read = try #require(try bytes.withUnsafeBytes { try reader.take($0) })
        #expect(read.rest == Bytes("glued"))
        guard case .upgrade(let request) = UpgradeRequest.judge(read.head) else { Issue.record("no upgrade"); return }
        #expect(request.target.wireForm == "/echo?x=1")
        #expect(request.subprotocols == ["chat", "tk-mux.1", "more"])
        #expect(request.key == Self.key)
        #expect(request.forwardedFor == nil)
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let request: String
        var status = 400
    }

    static let refusals: [Refusal] = {
        func text(_ head: String) -> String { head.replacing("\n", with: "\r\n") }
        let rest = sound.joined(separator: "\r\n") + "\r\n\r\n"
        return [
            Refusal(
                testDescription: "version 8",
                request: request(replacing("Sec-WebSocket-Version", "Sec-WebSocket-Version: 8")),
                status: 426),
            Refusal(testDescription: "no version", request: request(replacing("Sec-WebSocket-Version"))),
            Refusal(testDescription: "no key", request: request(replacing("Sec-WebSocket-Key"))),
            Refusal(testDescription: "two keys", request: request(sound + ["Sec-WebSocket-Key: \(key)"])),
            Refusal(
                testDescription: "a short key",
                request: request(replacing("Sec-WebSocket-Key", "Sec-WebSocket-Key: AAAA"))),
            Refusal(testDescription: "no Connection", request: request(replacing("Connection"))),
            Refusal(testDescription: "no Host", request: request(replacing("Host"))),
            Refusal(testDescription: "two Hosts", request: request(sound + ["Host: there"])),
            Refusal(
                testDescription: "two lengths", request: request(sound + ["Content-Length: 0", "Content-Length: 0"])),
            Refusal(testDescription: "a length in words", request: request(sound + ["Content-Length: +5"])),
            Refusal(testDescription: "a list of lengths", request: request(sound + ["Content-Length: 5, 5"])),
            Refusal(
                testDescription: "length and encoding",
                request: request(sound + ["Content-Length: 5", "Transfer-Encoding: chunked"])),
            Refusal(testDescription: "an upgrade with a body", request: request(sound + ["Content-Length: 5"])),
            Refusal(
                testDescription: "an upgrade with chunks", request: request(sound + ["Transfer-Encoding: chunked"])),
            Refusal(testDescription: "a folded line", request: request(sound + ["X-A: b", " c"])),
            Refusal(testDescription: "a space before the colon", request: request(sound + ["X-A : b"])),
            Refusal(testDescription: "an empty name", request: request(sound + [": b"])),
            Refusal(testDescription: "a line without colon", request: request(sound + ["nothing"])),
            Refusal(testDescription: "a control character", request: request(sound + ["X-A: \u{1}"])),
            Refusal(testDescription: "a zero byte", request: request(sound + ["X-A: \u{0}"])),
            Refusal(testDescription: "a bare CR", request: request(sound + ["X-A: a\rX-B: b"])),
            Refusal(testDescription: "lines that end in LF", request: "GET / HTTP/1.1\nHost: here\n\n"),
            Refusal(
                testDescription: "one line that ends in LF", request: "GET / HTTP/1.1\r\nHost: here\nX-A: b\r\n\r\n"),
            Refusal(testDescription: "an empty first line", request: "\r\nGET / HTTP/1.1\r\n" + rest),
            Refusal(testDescription: "two spaces", request: "GET  / HTTP/1.1\r\n" + rest),
            Refusal(testDescription: "no version of HTTP", request: "GET /\r\n" + rest),
            Refusal(testDescription: "a target without a slash", request: "GET echo HTTP/1.1\r\n" + rest),
            Refusal(testDescription: "a target with a fragment", request: "GET /a#b HTTP/1.1\r\n" + rest),
            Refusal(
                testDescription: "a target that is too long",
                request: "GET /\(String(repeating: "a", count: 5000)) HTTP/1.1\r\n" + rest),
            Refusal(testDescription: "HTTP/2", request: "PRI * HTTP/2.0\r\n\r\n", status: 505),
            Refusal(testDescription: "an endless line", request: String(repeating: "a", count: 20_000)),
            Refusal(
                testDescription: "too many fields",
                request: "GET / HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 200)),
        ]
    }()

    @Test(arguments: refusals)
    func `A request that could be read in two ways is refused`(refusal: Refusal) {
        #expect(Self.status(refusal.request) == refusal.status)
    }

    @Test func `A request that is no upgrade is answered for what is there`() {
        func plain(_ target: String, hasRoute: Bool, _ version: String = "HTTP/1.1") -> Int {
            Self.status(Self.request(["Host: here"], line: "GET \(target) \(version)"), hasRoute: hasRoute)
        }
        #expect(plain("/healthz", hasRoute: false) == 200)
        #expect(plain("/healthz", hasRoute: false, "HTTP/1.0") == 200)
        #expect(plain("/echo", hasRoute: true) == 426)
        #expect(plain("/none", hasRoute: false) == 404)
        #expect(plain("http://here/echo", hasRoute: true) == 426)
    }

    @Test func `A head may arrive byte by byte`() throws {
        var reader = HTTPHeadReader()
        let bytes = Bytes(Self.request(Self.sound))
        for index in 0..<bytes.count - 1 {
            #expect(try bytes[index..<index + 1].withUnsafeBytes { try reader.take($0) } == nil)
        }
        let last = try bytes.dropFirst(bytes.count - 1).withUnsafeBytes { try reader.take($0) }
        #expect(last?.head.startLine == "GET /echo?x=1 HTTP/1.1")
        #expect(last?.head.fields.count == 5)
    }

    @Test func `A refusal has the status of its close code`() {
        let table: [(CloseCode, Int)] = [
            (.badTarget, 400), (.credentialRejected, 401), (.refused, 403), (.nobodyThere, 404), (.busy, 503),
            (.tryAgainLater, 503), (.internalError, 500), (CloseCode(rawValue: 77), 500),
        ]
        for (code, status) in table { #expect(HTTPAnswer.refusal(code).status == status) }
        let text = String(validating: HTTPAnswer.wrongVersion.encoded()) ?? ""
        #expect(text.hasPrefix("HTTP/1.1 426 Upgrade Required\r\n"))
        #expect(text.contains("\r\nSec-WebSocket-Version: 13\r\n"))
    }
}
