package import TransportKit

/// The client's side of the upgrade (RFC 6455 §4.1): the request, and what it makes of the answer.
package struct UpgradeClient {
    /// What the answer led to.
    package enum Outcome: Sendable, Equatable {
        /// The WebSocket is open with that sub-protocol; `rest` came glued to the head.
        case open(subprotocol: String?, rest: Bytes)
        /// More bytes are needed.
        case incomplete
    }

    /// How much of a refusal's body is looked at.
    private static let bodyLimit = 1024
    /// Heads like 103 that may come before the answer (RFC 7231 §6.2).
    private static let interimLimit = 8

    private enum State {
        case head
        case refused(status: Int, retryAfter: String?, length: Int?, body: Bytes)
    }

    private let key: String
    private let subprotocol: String?
    private var reader = HTTPHeadReader()
    private var interims = 0
    private var state = State.head

    /// The request.
    package let request: Bytes

    /// Makes the request for a URL, offering a sub-protocol.
    package init(_ url: ServiceURL, subprotocol: String?, key: String = AcceptKey.makeKey()) {
        self.key = key
        self.subprotocol = subprotocol
        var text = "GET \(url.target.wireForm) HTTP/1.1\r\nHost: \(url.endpoint.authority)\r\n"
        text += "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: \(key)\r\n"
        text += "Sec-WebSocket-Version: 13\r\n"
        if let subprotocol { text += "Sec-WebSocket-Protocol: \(subprotocol)\r\n" }
        request = Bytes(text + "\r\n")
    }

    /// Takes bytes of the answer.
    ///
    /// - Throws: a refusal, once enough of its text is here to show, or what is wrong with the answer.
    package mutating func take(_ bytes: UnsafeRawBufferPointer) throws(TransportError) -> Outcome {
        switch state {
        case .head:
            return try unsafe takeHead(bytes)
        case .refused(let status, let retryAfter, let length, var body):
            unsafe body.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.bodyLimit - body.count)))
            state = .refused(status: status, retryAfter: retryAfter, length: length, body: body)
            guard body.count < min(length ?? .max, Self.bodyLimit) else { throw refusal(status, retryAfter, body) }
            return .incomplete
        }
    }

    /// Whether the answer was a refusal whose text is still arriving, which is not worth a long wait.
    package var isRefused: Bool {
        switch state {
        case .head: false
        case .refused: true
        }
    }

    /// The connection ended, or it has been waited for long enough.
    package func ended() -> TransportError {
        switch state {
        case .refused(let status, let retryAfter, _, let body): refusal(status, retryAfter, body)
        case .head where reader.isUntouched:
            TransportError(.pathReset, "the service ended the connection instead of answering the upgrade")
        case .head: TransportError(.pathReset, "the service ended the connection amid its answer to the upgrade")
        }
    }

    private mutating func takeHead(_ bytes: UnsafeRawBufferPointer) throws(TransportError) -> Outcome {
        var bytes = unsafe Bytes(copying: bytes)
        while true {
            let read: (head: HTTPHead, rest: Bytes)?
            do {
                read = try unsafe bytes.withUnsafeBytes { more throws(HTTPHead.Malformed) in
                    try unsafe reader.take(more)
                }
            } catch {
                throw TransportError(.protocolViolation, "the answer to the upgrade \(error.what)")
            }
            guard let (head, rest) = read else { return .incomplete }
            let status = try Self.status(head)
            switch status {
            case 101: return .open(subprotocol: try check(head), rest: rest)
            case 100..<200:
                interims += 1
                guard interims <= Self.interimLimit else {
                    throw TransportError(.protocolViolation, "the service sent no end of interim answers")
                }
                bytes = rest
            default:
                let length = head.values("content-length").first.flatMap { Int($0) }
                state = .refused(
                    status: status, retryAfter: head.values("retry-after").first, length: length, body: Bytes())
                return try unsafe rest.withUnsafeBytes { more throws(TransportError) in try unsafe take(more) }
            }
        }
    }

    private static func status(_ head: HTTPHead) throws(TransportError) -> Int {
        let parts = head.startLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0", parts[1].utf8.count == 3,
            parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let status = Int(parts[1]), status >= 100
        else { throw TransportError(.protocolViolation, "the answer to the upgrade is not HTTP/1.1") }
        return status
    }

    /// Every field counts: a cache or another kind of server must not pass for a WebSocket (B57).
    private func check(_ head: HTTPHead) throws(TransportError) -> String? {
        guard head.startLine.hasPrefix("HTTP/1.1 ") else { throw Self.wrong("the version HTTP/1.0") }
        guard head.list("upgrade").count == 1, head.list("upgrade", has: "websocket") else {
            throw Self.wrong("a wrong Upgrade field")
        }
        guard head.list("connection", has: "upgrade") else { throw Self.wrong("a wrong Connection field") }
        let accepts = head.values("sec-websocket-accept")
        guard accepts.count == 1 else {
            throw Self.wrong("\(accepts.isEmpty ? "no" : "more than one") Sec-WebSocket-Accept field")
        }
        guard accepts[0] == AcceptKey.answer(to: key) else { throw Self.wrong("a wrong Sec-WebSocket-Accept field") }
        guard head.list("sec-websocket-extensions").isEmpty else {
            throw Self.wrong("a Sec-WebSocket-Extensions field, and none was offered")
        }
        guard head.values("transfer-encoding").isEmpty, head.values("content-length").allSatisfy({ $0 == "0" }) else {
            throw Self.wrong("a body")
        }
        let protocols = head.values("sec-websocket-protocol")
        guard let chosen = protocols.first else { return nil }
        guard protocols.count == 1, chosen == subprotocol else {
            throw Self.wrong("a Sec-WebSocket-Protocol field that was not offered")
        }
        return chosen
    }

    private static func wrong(_ what: String) -> TransportError {
        TransportError(.protocolViolation, "the service switched protocols with \(what)")
    }

    private func refusal(_ status: Int, _ retryAfter: String?, _ body: Bytes) -> TransportError {
        var message = "the service answered the upgrade with \(status)"
        if let retryAfter { message += " and Retry-After \(retryAfter.printable(limit: 30))" }
        let text = unsafe body.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }.printable()
        return TransportError(.upgradeRefused, text.isEmpty ? message : "\(message): \(text)", number: UInt64(status))
    }
}
