package import TransportKit

/// What a listener makes of a request (RFC 6455 §4.2).
package struct UpgradeRequest: Sendable, Equatable {
    /// What the request is.
    package enum Verdict: Sendable, Equatable {
        /// A sound request for a WebSocket.
        case upgrade(UpgradeRequest)
        /// A sound request for something else: 426 where the target has a route, `ok` on `/healthz`, else 404.
        case plain(target: Target?, isHead: Bool)
        /// A request that cannot be answered with more than a refusal.
        case refused(HTTPAnswer)
    }

    package let target: Target
    package let key: String
    /// The sub-protocols that the client offers.
    package let subprotocols: [String]
    /// The last entry of `X-Forwarded-For`, which the nearest proxy has written; those before it are the client's own words.
    package let forwardedFor: String?

    /// Reads a request.
    package static func judge(_ head: HTTPHead) -> Verdict {
        let parts = head.startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty else { return refuse("the request line is malformed") }
        let isNewer = parts[2] == "HTTP/1.1"
        guard isNewer || parts[2] == "HTTP/1.0" else {
            return .refused(HTTPAnswer(505, "only HTTP/1.1 is spoken here"))
        }
        let hosts = head.values("host")
        guard hosts.count == 1 || (hosts.isEmpty && !isNewer) else { return refuse("one Host field is needed") }
        if let problem = bodyProblem(head) { return refuse(problem) }

        let target = readTarget(parts[1])
        guard isNewer, parts[0] == "GET", head.list("upgrade", has: "websocket") else {
            return .plain(target: target, isHead: parts[0] == "HEAD")
        }
        guard head.list("connection", has: "upgrade") else { return refuse("Connection does not name Upgrade") }
        guard head.values("content-length").allSatisfy({ $0 == "0" }), head.values("transfer-encoding").isEmpty else {
            return refuse("a request for a WebSocket has no body")
        }
        let versions = head.values("sec-websocket-version")
        guard versions == ["13"] else {
            guard versions.count == 1 else { return refuse("one Sec-WebSocket-Version field is needed") }
            return .refused(.wrongVersion)
        }
        let keys = head.values("sec-websocket-key")
        guard keys.count == 1, AcceptKey.isValid(keys[0]) else {
            return refuse("one Sec-WebSocket-Key field with 16 bytes in base 64 is needed")
        }
        guard let target else { return refuse("the target is malformed or longer than \(Target.limit) bytes") }
        return .upgrade(
            UpgradeRequest(
                target: target, key: keys[0], subprotocols: head.list("sec-websocket-protocol"),
                forwardedFor: head.list("x-forwarded-for").last))
    }

    private static func refuse(_ why: String) -> Verdict { .refused(HTTPAnswer(400, why)) }

    /// A body is never read, and the connection ends after the answer; but how long it is must be beyond doubt all the
    /// same, since a proxy may have put another request behind it (RFC 7230 §3.3.3).
    private static func bodyProblem(_ head: HTTPHead) -> String? {
        let lengths = head.values("content-length")
        guard lengths.count <= 1 else { return "there are two Content-Length fields" }
        guard head.values("transfer-encoding").isEmpty || lengths.isEmpty else {
            return "there are both Content-Length and Transfer-Encoding"
        }
        if let length = lengths.first {
            guard !length.isEmpty, length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return "Content-Length is not a number"
            }
        }
        return nil
    }

    /// The path form, or the path of the absolute form, which a server must take too (RFC 7230 §5.3.2).
    private static func readTarget(_ text: Substring) -> Target? {
        guard !text.hasPrefix("/") else { return Target(String(text)) }
        for scheme in ["http://", "https://", "ws://", "wss://"] where text.lowercased().hasPrefix(scheme) {
            let rest = text.dropFirst(scheme.count)
            guard let slash = rest.firstIndex(where: { $0 == "/" || $0 == "?" }) else { return .root }
            return Target(rest[slash] == "/" ? String(rest[slash...]) : "/" + rest[slash...])
        }
        return nil
    }
}
