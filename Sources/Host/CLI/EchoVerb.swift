internal import TransportHost
internal import TransportKit

/// `echo`: a listener that answers with what it is sent.
enum EchoVerb: Verb {
    static let name = "echo"
    static let usage = "[URL] [flags]"
    static let summary = "Listens and answers each message and stream with its own bytes"
    static let details = """
        URL says where: wss://127.0.0.1:0/echo unless said otherwise, where port 0 takes a free one. Without
        --certificate it makes a certificate of its own for as long as it runs. Prints the URL and the pin that clients
        need, then `ready`, and stops like `run`.
        """
    static let stopsOnSignals = true
    static let operands = 0...1
    static let flags: [Flag] = [
        Flag("--certificate", "FILE", "the certificate to show, as a PEM file"),
        Flag("--key", "FILE", "its private key"),
    ]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        let url: ServiceURL
        do {
            url = try ServiceURL(arguments.operands.first ?? "wss://127.0.0.1:0/echo")
        } catch {
            throw UsageError("\(error), for example wss://127.0.0.1:8443/echo")
        }
        guard url.target.query == nil else { throw UsageError("the URL has a query; a listener has a path alone") }
        var files: CertificateFiles?
        switch (arguments.value("--certificate"), arguments.value("--key")) {
        case (nil, nil): break
        case (let certificate?, let key?): files = CertificateFiles(certificate: certificate, key: key)
        case (_?, nil), (nil, _?): throw UsageError("--certificate and --key go together")
        }
        if files != nil, url.endpoint.scheme == .ws {
            throw UsageError("--certificate is of no use with ws://; write wss:// or leave it out")
        }
        try await HostProgram.echo(url, certificate: files) { endpoint, pin in
            let address = ServiceURL(endpoint, target: url.target)
            Console.say("listening at \(address)")
            if let pin { Console.say("pin \(pin)") }
            Console.say("ready")
        }
        return ExitCode.done
    }
}
