internal import TransportHost

/// `keygen`: makes the key by which peers know this machine.
enum KeygenVerb: Verb {
    static let name = "keygen"
    static let usage = "FILE [--json] | --public FILE [--json]"
    static let summary = "Makes a private key and prints the public one"
    static let details = """
        Writes a new private key to FILE, which only its owner can read, and prints the public key, by which peers know
        it: 43 characters of base64url. A file that is there is never overwritten. With --public it makes none and prints
        the public key of the one in FILE.

        A config file names it with `keys: { device: FILE }`.
        """
    static let operands = 1...1
    static let flags: [Flag] = [
        Flag("--public", "print the public key of the file that is there"),
        Flag("--json", "print one line of JSON, which also says what a door knows the key by"),
    ]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        let file = arguments.operands[0]
        let report = arguments.has("--public") ? try KeyReport.read(file) : try KeyReport.make(file)
        return ExitCode.saying(arguments.has("--json") ? report.json : report.publicKey)
    }
}
