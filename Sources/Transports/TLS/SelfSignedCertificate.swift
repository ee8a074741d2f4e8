internal import CGnuTLS
internal import Glibc
public import TransportKit

/// Certificates that sign themselves, for tests, demonstrations and pinned links between one's own machines.
public enum SelfSignedCertificate {
    /// How long before its end a certificate is replaced.
    private static let renewal = Duration.seconds(30 * 86_400)

    /// Returns the pair in `directory`, and makes it where there is none that covers `names` and lasts another month.
    ///
    /// The key is EC P-256, the certificate began a day ago and lasts for a year. The files are `certificate.pem` and
    /// `key.pem`, the key readable by its owner alone. Processes that ask at the same time get the same pair. A
    /// certificate that somebody else has issued is never replaced.
    ///
    /// - Parameters:
    ///   - names: DNS names and addresses that the certificate is for, at least one.
    ///   - directory: where the pair is kept; it is made where it is missing, open to nobody else.
    /// - Throws: an error that names the file or the name at fault.
    public static func makeIfMissing(names: [String], directory: String) throws(TransportError) -> CertificateFiles {
        var hosts: [Host] = []
        for name in names {
            guard let host = Host(name) else {
                throw TransportError(
                    .misuse,
                    "\"\(name.printable(limit: 120))\" is neither a name nor an address to make a certificate for")
            }
            hosts.append(host)
        }
        guard !hosts.isEmpty else { throw TransportError(.misuse, "a certificate needs at least one name") }
        try TLSFile.makeDirectory(directory)
        let lock = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard lock >= 0 else { throw TLSFile.failure(errno, "the directory \(directory) cannot be opened") }
        defer { close(lock) }
        // Whoever makes a certificate needs a moment on a slow machine.
        let problem = TLSFile.takeTurn(lock, within: .seconds(5))
        guard problem == 0 else {
            throw problem == EWOULDBLOCK
                ? TransportError(.system, "somebody else keeps the directory \(directory) locked")
                : TLSFile.failure(problem, "the directory \(directory) cannot be locked")
        }
        let files = CertificateFiles(certificate: "\(directory)/certificate.pem", key: "\(directory)/key.pem")
        TLSFile.sweep(directory, names: ["certificate.pem", "key.pem"])
        if try isUsable(files, for: hosts) { return files }
        return try CertificateRecipe(hosts: hosts).make().write(directory: directory)
    }

    /// Whether the pair is there and will do.
    private static func isUsable(_ files: CertificateFiles, for hosts: [Host]) throws(TransportError) -> Bool {
        guard unsafe access(files.certificate, F_OK) == 0 else { return false }
        let pem = try TLSFile.read(files.certificate, what: "the certificate")
        let found = Certificate(pem: pem)
        guard let found else { return false }
        guard found.subject == found.issuer else {
            throw TransportError(
                .misuse,
                "the certificate \(files.certificate) was issued by \"\(found.issuer)\" and is not replaced by a "
                    + "self-signed one; name another directory")
        }
        // A certificate from the future is kept: it is the clock that is wrong (B52).
        guard TLSText.wallNow() + renewal < found.notAfter, hosts.allSatisfy({ found.isFor($0) }) else { return false }
        guard unsafe access(files.key, F_OK) == 0 else { return false }
        let keyPEM = try TLSFile.read(files.key, what: "the private key", isSecret: true)
        guard let key = try? PrivateKey(pem: keyPEM) else { return false }
        return key.keyHash == found.keyHash
    }
}
