import Testing
import TransportKit
import WebSocketTransport

/// What a dialer makes of the answer to its upgrade (B36, B57, RFC 6455 §4.1).
@Suite struct UpgradeClientTests {
    static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    static let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    static let sound = ["Upgrade: websocket", "Connection: Upgrade", accept]

    static func answer(_ fields: [String], line: String = "HTTP/1.1 101 Switching Protocols", body: String = "")
        -> String
    {
        ([line] + fields).joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    static func take(
        _ text: String, offering subprotocol: String? = "tk-mux.1", step: Int = .max
    ) throws -> UpgradeClient.Outcome {
        var client = UpgradeClient(try ServiceURL("ws://here/echo"), subprotocol: subprotocol, key: key)
        var rest = Bytes(text)
        var outcome = UpgradeClient.Outcome.incomplete
        while !rest.isEmpty, outcome == .incomplete {
            let piece = rest.takeFirst(min(step, rest.count))
            outcome = try piece.withUnsafeBytes { try client.take($0) }
        }
        if outcome == .incomplete { throw client.ended() }
        return outcome
    }

    @Test func `The request asks for exactly what is wanted`() throws {
        let client = UpgradeClient(
            try ServiceURL("wss://[::1]:8443/v1/app?t=1"), subprotocol: "tk-mux.1", key: Self.key)
        let text = try #require(String(validating: client.request))
        #expect(
            text == """
                GET /v1/app?t=1 HTTP/1.1\r\nHost: [::1]:8443\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Key: \(Self.key)\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: tk-mux.1\r\n\r\n
                """)
        #expect(UpgradeRequestTests.status(text) == 101)
        let other = UpgradeClient(try ServiceURL("wss://here/"), subprotocol: nil)
        #expect(other.request != UpgradeClient(try ServiceURL("wss://here/"), subprotocol: nil).request)
    }

    @Test(
        arguments: [
            (sound, nil),
            (sound + ["Sec-WebSocket-Protocol: tk-mux.1"], "tk-mux.1"),
            (
                [
                    "upgrade: WEBSOCKET", "connection: keep-alive, upgrade",
                    accept.replacing("Sec-WebSocket-Accept", with: "sec-websocket-accept"),
                ], nil
            ),
            (sound + ["Server: x", "Content-Length: 0"], nil),
        ] as [([String], String?)])
    func `A sound answer opens the socket`(fields: [String], subprotocol: String?) throws {
        for step in [Int.max, 1] {
            let open = try Self.take(Self.answer(fields), step: step)
            #expect(open == .open(subprotocol: subprotocol, rest: Bytes()))
        }
    }

    @Test func `What comes glued to the head is kept, also after an interim answer`() throws {
        let glued = Self.answer(["Link: x"], line: "HTTP/1.1 103 Early Hints") + Self.answer(Self.sound, body: "frame")
        #expect(try Self.take(glued) == .open(subprotocol: nil, rest: Bytes("frame")))
    }

    @Test(
        arguments: [
            (["Upgrade: websocket", "Connection: Upgrade"], "no Sec-WebSocket-Accept"),
            (sound + [accept], "more than one Sec-WebSocket-Accept"),
            (
                ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: AAAA"],
                "wrong Sec-WebSocket-Accept"
            ),
            (["Connection: Upgrade", accept], "Upgrade"),
            (["Upgrade: h2c", "Connection: Upgrade", accept], "Upgrade"),
            (["Upgrade: websocket", "Connection: close", accept], "Connection"),
            (sound + ["Sec-WebSocket-Protocol: chat"], "Sec-WebSocket-Protocol"),
            (sound + ["Sec-WebSocket-Protocol:"], "Sec-WebSocket-Protocol"),
            (
                sound + ["Sec-WebSocket-Protocol: tk-mux.1", "Sec-WebSocket-Protocol: tk-mux.1"],
                "Sec-WebSocket-Protocol"
            ),
            (sound + ["Sec-WebSocket-Extensions: permessage-deflate"], "Sec-WebSocket-Extensions"),
            (sound + ["Transfer-Encoding: chunked"], "body"),
        ] as [([String], String)])
    func `An answer that is wrong in one field names it`(fields: [String], name: String) {
        let error = #expect(throws: TransportError.self) { try Self.take(Self.answer(fields)) }
        #expect(error?.code == .protocolViolation)
        #expect(error?.message.contains(name) == true)
    }

    @Test(arguments: [200, 301, 400, 404, 426, 429, 500, 502, 503])
    func `A refusal shows its status and the first printable characters`(status: Int) {
        let body = "<p>\u{1b}[31mno\u{202e}pe</p>" + String(repeating: "x", count: 1 << 20)
        for fields in [["Content-Length: \(body.utf8.count)"], []] {
            let text = Self.answer(fields, line: "HTTP/1.1 \(status) Whatever", body: body)
            let error = #expect(throws: TransportError.self) { try Self.take(text) }
            #expect(error?.code == .upgradeRefused)
            #expect(error?.number == UInt64(status))
            #expect(error?.message.contains("\(status): <p>\u{fffd}[31mno\u{fffd}pe</p>xxx") == true)
            #expect((error?.message.count ?? 0) < 300)
        }
    }

    @Test func `A refusal without text says so much`() {
        let text = Self.answer(["Content-Length: 0", "Retry-After: 30"], line: "HTTP/1.1 503 Busy")
        let error = #expect(throws: TransportError.self) { try Self.take(text) }
        #expect(error?.message == "the service answered the upgrade with 503 and Retry-After 30")
    }

    struct Garbage: Sendable, CustomTestStringConvertible {
        let text: String
        var testDescription: String {
            text.split { $0.isNewline }.first.map { String($0.prefix(20)) } ?? "an empty line"
        }
    }

    @Test(
        arguments: [
            "SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/2.0 101 x\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n", "HTTP/1.1 1e1 x\r\n\r\n",
            "\r\n\r\n",
            "HTTP/1.1 101 x\nUpgrade: websocket\n\n", String(repeating: "a", count: 20_000),
            "HTTP/1.1 200 OK\r\n" + String(repeating: "a: b\r\n", count: 5000),
            String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 100),
        ].map { Garbage(text: $0) })
    func `What is not HTTP is an error in bounded memory`(garbage: Garbage) {
        let error = #expect(throws: TransportError.self) { try Self.take(garbage.text) }
        #expect(error?.code == .protocolViolation)
    }

    @Test func `An end amid the answer is told apart from no answer`() {
        let partial = #expect(throws: TransportError.self) { try Self.take("HTTP/1.1 101 Swi") }
        #expect(partial?.code == .pathReset)
        #expect(partial?.message.contains("amid") == true)
    }
}
