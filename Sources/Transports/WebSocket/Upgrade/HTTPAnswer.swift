package import TransportKit

/// What a listener says on HTTP: the switch to the WebSocket, or a short text and the end of the connection.
package struct HTTPAnswer: Sendable, Equatable {
    package let status: Int
    package let text: String
    var fields: [(name: String, value: String)] = []

    init(_ status: Int, _ text: String) {
        self.status = status
        self.text = text
    }

    /// Switches to the WebSocket.
    package static func switching(to request: UpgradeRequest, subprotocol: String?) -> HTTPAnswer {
        var answer = HTTPAnswer(101, "")
        answer.fields = [
            ("Upgrade", "websocket"), ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", AcceptKey.answer(to: request.key)),
        ]
        if let subprotocol { answer.fields.append(("Sec-WebSocket-Protocol", subprotocol)) }
        return answer
    }

    /// The health check.
    static let healthy = HTTPAnswer(200, "ok")

    /// Nothing is here.
    static let notFound = HTTPAnswer(404, "nothing is here")

    /// A WebSocket is here and nothing else.
    static let upgradeRequired: HTTPAnswer = {
        var answer = HTTPAnswer(426, "this is a WebSocket")
        answer.fields = [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
        return answer
    }()

    /// The one version of RFC 6455 (§4.4).
    package static let wrongVersion: HTTPAnswer = {
        var answer = HTTPAnswer(426, "only version 13 of the WebSocket is spoken here")
        answer.fields = [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
        return answer
    }()

    /// The status that stands for a close code.
    package static func refusal(_ code: CloseCode) -> HTTPAnswer {
        let status =
            switch code {
            case .badTarget: 400
            case .credentialRejected: 401
            case .refused: 403
            case .nobodyThere: 404
            case .busy, .tryAgainLater: 503
            default: 500
            }
        return HTTPAnswer(status, "\(code)")
    }

    /// The answer to a request that is no upgrade.
    package static func plain(_ target: Target?, hasRoute: (Target) -> Bool) -> HTTPAnswer {
        guard let target else { return HTTPAnswer(400, "the target is malformed or longer than \(Target.limit) bytes") }
        if target.path == "/healthz" { return .healthy }
        return hasRoute(target) ? .upgradeRequired : .notFound
    }

    /// The bytes on the wire. After any status but 101 the connection ends.
    package func encoded(isHead: Bool = false) -> Bytes {
        var head = "HTTP/1.1 \(status) \(Self.phrases[status] ?? "Error")\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        guard status != 101 else { return Bytes(head + "\r\n") }
        // RFC 7230 §6.7: a sender of Upgrade names it in Connection too.
        let connection = fields.contains { $0.name == "Upgrade" } ? "Upgrade, close" : "close"
        head += "Connection: \(connection)\r\nContent-Type: text/plain; charset=utf-8\r\n"
        head += "Content-Length: \(text.utf8.count)\r\n\r\n"
        return Bytes(isHead ? head : head + text)
    }

    private static let phrases = [
        101: "Switching Protocols", 200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
        404: "Not Found", 426: "Upgrade Required", 500: "Internal Server Error", 503: "Service Unavailable",
        505: "HTTP Version Not Supported",
    ]

    package static func == (left: HTTPAnswer, right: HTTPAnswer) -> Bool {
        left.encoded() == right.encoded()
    }
}
