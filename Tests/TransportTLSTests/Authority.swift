import Glibc
import Testing
import TransportKit
import TransportTLS

/// An issuer of certificates for tests, with a directory that goes away with it.
final class Authority {
    let directory: String
    let root: IssuedCertificate
    private var count = 0

    init() throws {
        directory = "/tmp/transport-tls-tests-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        root = try CertificateRecipe(hosts: [#require(Host("root.example"))], isAuthority: true).make()
    }

    deinit { remove(directory) }

    /// Trusts this issuer.
    var trusting: ClientSecurity { ClientSecurity(trust: .pem(rootPEM)) }

    var rootPEM: String { String(validating: root.certificate) ?? "" }

    /// A path for a file or directory of a test.
    func path(_ name: String) -> String { "\(directory)/\(name)" }

    /// Issues a certificate into files of its own.
    func issue(
        _ names: [String] = ["door.example"], from begin: Int64 = -86_400, to end: Int64 = 86_400,
        key: CertificateRecipe.Key = .ecP256, issuer: IssuedCertificate? = nil
    ) throws -> CertificateFiles {
        count += 1
        let now = WallTime(seconds: Int64(time(nil)))
        return try CertificateRecipe(
            hosts: names.compactMap { Host($0) }, notBefore: now + .seconds(begin), notAfter: now + .seconds(end),
            key: key
        ).make(issuer: issuer ?? root).write(directory: path("\(count)"))
    }

    /// A listener's credentials with a certificate like that.
    func server(
        _ names: [String] = ["door.example"], from begin: Int64 = -86_400, to end: Int64 = 86_400,
        key: CertificateRecipe.Key = .ecP256, clientPins: [PublicKeyHash]? = nil
    ) throws -> TLSServerCredentials {
        try TLSServerCredentials(
            ServerSecurity(identity: issue(names, from: begin, to: end, key: key), clientPins: clientPins),
            allowingWeakKey: true)
    }

    private func remove(_ path: String) {
        guard let listing = opendir(path) else {
            unlink(path)
            return
        }
        while let entry = readdir(listing) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { remove("\(path)/\(name)") }
        }
        closedir(listing)
        rmdir(path)
    }
}
