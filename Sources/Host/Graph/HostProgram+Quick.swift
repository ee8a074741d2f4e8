internal import Glibc
internal import TransportIO
package import TransportKit

/// The verbs that need no config file: they write one and run that, so that there is one way to run things.
extension HostProgram {
    /// Runs one listening forward.
    package static func forward(
        _ listen: TCPEndpoint, _ dial: DialSettings, _ to: TCPEndpoint,
        ready: @escaping @Sendable (HostRunner.Bound) -> Void
    ) async throws {
        var carrier: [(String, Value)] = [("kind", .text("direct")), ("url", .text(dial.url.wireForm))]
        if let transports = dial.transports { carrier.append(("transports", .list(transports.map(Value.text)))) }
        if dial.url.endpoint.scheme == .wss {
            var tls: [(String, Value)] = [("pin", .list(dial.pins.map { .text("\($0)") }))]
            if let trust = dial.trustFile { tls.append(("trust", .text(trust))) }
            if let name = dial.serverName { tls.append(("serverName", .text(name))) }
            carrier.append(("tls", .mapping(tls)))
        }
        if let timeout = dial.timeout {
            let milliseconds = max(Int(timeout.inMilliseconds.rounded()), 1)
            carrier.append(("limits", .mapping([("handshakeTimeout", .text("\(milliseconds)ms"))])))
        }
        let config = Value.mapping([
            Self.keepsNothing,
            ("carriers", .mapping([("main", .mapping(carrier))])),
            (
                "forwards",
                .list([
                    .mapping([
                        ("listen", .text("\(listen)")), ("carrier", .text("main")), ("to", .text("\(to)")),
                    ])
                ])
            ),
        ])
        try await withStopSignals { stop in
            try await run(
                HostConfiguration(text: config.json, name: "command line"), allowsAnyPort: true, stop: stop,
                ready: ready)
        }
    }

    /// Runs one listener with the service `echo`.
    ///
    /// - Parameter ready: told where it listens and which pin clients need.
    package static func echo(
        _ url: ServiceURL, certificate: CertificateFiles?,
        ready: @escaping @Sendable (Endpoint, PublicKeyHash?) -> Void
    ) async throws {
        try await withStopSignals { stop in
            try await withTemporaryFolder { folder in
                try await echo(url, certificate: certificate, folder: folder, stop: stop, ready: ready)
            }
        }
    }

    private static func echo(
        _ url: ServiceURL, certificate: CertificateFiles?, folder: String, stop: StopRequest,
        ready: @escaping @Sendable (Endpoint, PublicKeyHash?) -> Void
    ) async throws {
        var listener: [(String, Value)] = [
            ("url", .text("\(url.endpoint)")),
            ("routes", .mapping([(url.target.path, .mapping([("service", .text("echo"))]))])),
        ]
        if let certificate {
            let files: [(String, Value)] = [
                ("certificate", .text(certificate.certificate)), ("key", .text(certificate.key)),
            ]
            listener.append(("tls", .mapping(files)))
        } else if url.endpoint.scheme == .wss {
            let names = Set([url.endpoint.host.bare, "localhost", "127.0.0.1", "::1"]).sorted()
            let own: [(String, Value)] = [
                ("selfSigned", .list(names.map(Value.text))), ("directory", .text(folder)),
            ]
            listener.append(("tls", .mapping(own)))
        }
        let config = Value.mapping([
            Self.keepsNothing, ("listeners", .mapping([("echo", .mapping(listener))])),
        ])
        try await run(
            HostConfiguration(text: config.json, name: "command line"), allowsAnyPort: true, stop: stop
        ) { bound in
            if let endpoint = bound.listeners["echo"] { ready(endpoint, bound.pins["echo"]) }
        }
    }

    /// What is not in a file leaves nothing in any other.
    private static var keepsNothing: (String, Value) { ("state", .text("none")) }

    /// Makes a folder that only this user can read, and removes it with the files in it afterwards.
    static func withTemporaryFolder<Result>(_ body: (String) async throws -> Result) async throws -> Result {
        var template = Array("/tmp/transportkit.XXXXXX".utf8CString)
        let isMade = unsafe template.withUnsafeMutableBufferPointer { name in
            guard let start = name.baseAddress else { return false }
            return unsafe mkdtemp(start) != nil
        }
        guard isMade else { throw TransportError(errno: errno, doing: "making a folder in /tmp") }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer {
            for file in ["certificate.pem", "key.pem"] { unsafe unlink("\(folder)/\(file)") }
            unsafe rmdir(folder)
        }
        return try await body(folder)
    }
}

extension ServiceURL {
    /// The URL with its query, as it is dialled.
    var wireForm: String { "\(endpoint)\(target.wireForm)" }
}

/// A value on its way into a config text.
enum Value {
    case text(String)
    case list([Value])
    case mapping([(String, Value)])

    /// The value as JSON, which YAML reads.
    var json: String {
        switch self {
        case .text(let text): Self.quoted(text)
        case .list(let elements): "[" + elements.map(\.json).joined(separator: ", ") + "]"
        case .mapping(let entries):
            "{" + entries.map { "\(Self.quoted($0.0)): \($0.1.json)" }.joined(separator: ", ") + "}"
        }
    }

    /// RFC 8259 §7: quotes, backslashes and control characters are written as escapes.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case _ where scalar.value < 0x20 || scalar.value == 0x7f:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
