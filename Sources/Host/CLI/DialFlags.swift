internal import TransportHost
internal import TransportKit

/// The flags of every verb that dials.
enum DialFlags {
    static let all: [Flag] = [
        Flag(
            "--pin", "sha256:HEX", isRepeatable: true,
            "accept the certificate or public key with this hash and no other;\n`run` and `echo` print that of theirs"),
        Flag("--trust", "FILE", "trust the certificates in this PEM file instead of the machine's own"),
        Flag("--server-name", "NAME", "the name to find in the certificate, where it is not the URL's host"),
        Flag(
            "--transports", "LIST",
            "what to race, best first and comma-separated: quic,websocket\nunless said otherwise, or one of them alone"),
        Flag("--timeout", "DURATION", "how long a dial may take, such as 5s; 10s unless said otherwise"),
    ]

    static func settings(url text: String, _ arguments: Arguments) throws(UsageError) -> DialSettings {
        let url: ServiceURL
        do {
            url = try ServiceURL(text)
        } catch {
            throw UsageError("\(error), for example wss://127.0.0.1:8443/echo")
        }
        guard url.endpoint.port > 0 else { throw UsageError("the URL has port 0; 1 to 65535 are allowed") }
        var settings = DialSettings(url: url)
        for text in arguments.all("--pin") {
            guard let pin = PublicKeyHash(text) else {
                throw UsageError("--pin must be sha256: and 64 hexadecimal digits")
            }
            settings.pins.append(pin)
        }
        settings.trustFile = arguments.value("--trust")
        settings.serverName = arguments.value("--server-name")
        settings.transports = try arguments.value("--transports").map { text throws(UsageError) in
            try transports(text, url)
        }
        settings.timeout = try duration("--timeout", arguments)
        if let timeout = settings.timeout, timeout < DialSettings.leastTimeout {
            throw UsageError("--timeout must be at least 100ms")
        }
        let isPlain = url.endpoint.scheme == .ws
        for flag in ["--pin", "--trust", "--server-name"] where isPlain && arguments.has(flag) {
            throw UsageError("\(flag) is of no use with ws://; write wss:// or leave it out")
        }
        return settings
    }

    private static func transports(_ text: String, _ url: ServiceURL) throws(UsageError) -> [String] {
        let known = ["quic", "websocket"]
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        for (index, name) in names.enumerated() {
            guard known.contains(name) else {
                let hint = Words.nearest(to: name, among: known).map { "did you mean '\($0)'? " } ?? ""
                throw UsageError("--transports: there is no '\(name)'; \(hint)there are \(Words.list(known))")
            }
            guard !names[..<index].contains(name) else { throw UsageError("--transports names '\(name)' twice") }
            guard name != "quic" || url.endpoint.scheme == .wss else {
                throw UsageError("--transports: QUIC has no form without TLS; write wss:// or leave it out")
            }
        }
        return names
    }

    /// A flag whose value is a duration.
    static func duration(_ flag: String, _ arguments: Arguments) throws(UsageError) -> Duration? {
        guard let text = arguments.value(flag) else { return nil }
        guard let duration = Duration(configText: text), duration > .zero else {
            throw UsageError("\(flag) must be a duration such as 250ms, 5s or 2m, and is '\(text)'")
        }
        return duration
    }
}
