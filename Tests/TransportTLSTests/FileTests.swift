import Glibc
import Testing
import TransportKit
import TransportTLS

/// Files of certificates: what is wrong is said with the file's name and what to do, and never with its contents.
struct FileTests {
    let authority: Authority

    init() throws { authority = try Authority() }

    private func failure(_ files: CertificateFiles) -> TransportError? {
        do throws(TransportError) {
            _ = try TLSServerCredentials(ServerSecurity(identity: files))
            return nil
        } catch {
            return error
        }
    }

    @Test func `a missing file is named`() throws {
        var files = try authority.issue()
        files.key = authority.path("nowhere.pem")
        #expect(
            failure(files)?.message == "the private key \(files.key) cannot be read: No such file or directory")
        files.certificate = authority.path("nothing.pem")
        let error = failure(files)
        #expect(error?.message == "the certificate \(files.certificate) cannot be read: No such file or directory")
        #expect(error?.code == .system && error?.number == UInt64(ENOENT))
        files.certificate = authority.directory
        #expect(failure(files)?.message.contains("is not a regular file") == true)
    }

    @Test func `a pair that does not match names both files`() throws {
        var files = try authority.issue()
        files.key = try authority.issue().key
        let message = failure(files)?.message ?? ""
        #expect(message.contains(files.certificate) && message.contains(files.key))
        #expect(message.contains("do not belong together"))
    }

    @Test func `a private key that others may read is refused with the cure`() throws {
        // B23
        let files = try authority.issue()
        chmod(files.key, 0o644)
        #expect(failure(files)?.message.hasSuffix("run: chmod o= '\(files.key)'") == true)
        // A group, such as Debian's ssl-cert, is the owner's decision.
        chmod(files.key, 0o640)
        #expect(failure(files) == nil)
    }

    @Test func `a key with a password, and text that is no key, are told apart without showing them`() throws {
        let files = try authority.issue()
        try write(Self.encryptedKey, to: files.key)
        #expect(failure(files)?.message.contains("is protected by a password") == true)
        // B23
        try write("-----BEGIN PRIVATE KEY-----\nc2VjcmV0bWFya2Vy\n-----END PRIVATE KEY-----\n", to: files.key)
        let error = try #require(failure(files))
        #expect(error.message.contains(files.key))
        #expect(!error.message.contains("c2VjcmV0") && !error.message.contains("secretmarker"))
    }

    @Test func `a file without a certificate is named`() throws {
        let files = try authority.issue()
        try write("no certificate\n", to: files.certificate)
        #expect(failure(files)?.message.contains("\(files.certificate) holds no PEM certificate") == true)
        let path = authority.path("empty.pem")
        try write("", to: path)
        for security in [ClientSecurity(trust: .file(path)), ClientSecurity(trust: .pem("nothing"))] {
            let error = #expect(throws: TransportError.self) { try TLSClientCredentials(security) }
            #expect(error?.code == .misuse)
        }
        #expect(throws: TransportError.self) { try CertificateHashes(certificateFile: path) }
    }

    @Test func `the trust file is read again for every dial`() throws {
        let path = authority.path("trust.pem")
        let server = try authority.server()
        try write(Authority().rootPEM, to: path)
        let security = ClientSecurity(trust: .file(path))
        #expect(try TLSPair(security, server).handshake().client?.code == .certificateUnknownIssuer)
        try write(authority.rootPEM, to: path)
        #expect(try TLSPair(security, server).handshake().client == nil)
    }

    @Test func `hashes are those that OpenSSL computes`() throws {
        let path = authority.path("vector.pem")
        try write(Self.certificate, to: path)
        let hashes = try CertificateHashes(certificateFile: path)
        #expect("\(hashes.certificate)" == "sha256:f302647046638cab9af75f2b797d0ca576c8881a1fcdc39525e403609eba8b29")
        #expect("\(hashes.key)" == "sha256:c4ce0b6126d10594a0ce1a0593a1f3b41e1b38163b727e237f9c47a92a1f3848")
    }

    /// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=vector.example`
    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBijCCAS+gAwIBAgIUVTPXSV5Q5A1GkyavHeiRD7o0V58wCgYIKoZIzj0EAwIw
        GTEXMBUGA1UEAwwOdmVjdG9yLmV4YW1wbGUwIBcNMjYxMTMwMDczMzEzWhgPMjEy
        NjExMDYwNzMzMTNaMBkxFzAVBgNVBAMMDnZlY3Rvci5leGFtcGxlMFkwEwYHKoZI
        zj0CAQYIKoZIzj0DAQcDQgAExpZIKv1vqYOlnbCVQSohU1H+ayt9dZW73wDNVcEP
        Sxjo5B7SnrVtxnMBkTuTVvvXc0dybpZj8mKgRS2aKYtbHKNTMFEwHQYDVR0OBBYE
        FI1xh1Cts7CLKqgwEl/2nHVXdaI9MB8GA1UdIwQYMBaAFI1xh1Cts7CLKqgwEl/2
        nHVXdaI9MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAIBjrvYb
        oKwxO1GUZpVNm/2JGmYcUOZfIdehYY9kTYcxAiEA8CL0E/U05I5qT9Vw1tu2cUP7
        Q4mUvDhhufk7tQlbiTU=
        -----END CERTIFICATE-----

        """

    /// The same key, `openssl pkcs8 -topk8 -passout pass:secret`.
    static let encryptedKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjwJks/Xh0dBgICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEOUHSFlgTb6+aF9DbmxW3DoEgZBd
        MRR1Vll6/wlfCgDthl6Vup22pgSJEnSe5l+Qozsc5UFBwZIDfB4AG6vJamHQ/Iga
        cpTBDgepNoHjGKmUI5FMWyZVMl1NoFUgQjjACrZLhwJx3sLatDvjcsTgQugn9A7B
        am16pVLyGYVNojZvy4DivmnKDv57NT/bQUVI62luNNDUJPFSPT48vZGZtrJJpc4=
        -----END ENCRYPTED PRIVATE KEY-----

        """
}

/// Writes a file for its owner alone, with the directories above it.
func write(_ text: String, to path: String) throws {
    if let slash = path.lastIndex(of: "/") { mkdir(String(path[..<slash]), 0o700) }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    try #require(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
}
