import Foundation
import Glibc
import Testing
import TransportKit
import TransportTLS

/// Certificates for the demo: made once, kept while they will do.
struct SelfSignedCertificateTests {
    let authority: Authority
    let names = ["localhost", "127.0.0.1", "::1"]

    init() throws { authority = try Authority() }

    private func contents(_ path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = read(descriptor, &buffer, buffer.count)
        return Array(buffer.prefix(max(count, 0)))
    }

    @Test func `it serves every name it was made for, to a client that trusts its file`() throws {
        let files = try SelfSignedCertificate.makeIfMissing(names: names, directory: authority.path("a/b/state"))
        #expect(files.certificate == authority.path("a/b/state/certificate.pem"))
        #expect(files.key == authority.path("a/b/state/key.pem"))
        let server = try TLSServerCredentials(ServerSecurity(identity: files))
        for name in names {
            let pair = try TLSPair(ClientSecurity(trust: .file(files.certificate)), server, host: name)
            let failures = pair.handshake()
            #expect(failures.client == nil && failures.server == nil)
        }
        let other = try TLSPair(ClientSecurity(trust: .file(files.certificate)), server, host: "127.0.0.2")
        #expect(
            other.handshake().client?.message
                == "the certificate is for localhost, 127.0.0.1 and ::1, not for 127.0.0.2")
    }

    // RFC 5915 §3. Half of all keys failed this, so sixteen are made.
    @Test func `the key is written with all its 32 bytes, as strict readers want it`() throws {
        for number in 0..<16 {
            let files = try SelfSignedCertificate.makeIfMissing(
                names: names, directory: authority.path("key-\(number)"))
            let text = String(decoding: try contents(files.key), as: UTF8.self)
            let body = text.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
            let der = Array(try #require(Data(base64Encoded: body)))
            // Version 1 and a string of 32 bytes.
            #expect(der.split(separator: [0x02, 0x01, 0x01, 0x04, 0x20], maxSplits: 1).count == 2)
        }
    }

    @Test func `the key is its owner's alone and no half-written file is left`() throws {
        let directory = authority.path("state")
        let files = try SelfSignedCertificate.makeIfMissing(names: names, directory: directory)
        var status = stat()
        #expect(stat(files.key, &status) == 0 && status.st_mode & 0o777 == 0o600)
        let listing = try #require(opendir(directory))
        defer { closedir(listing) }
        var count = 0
        while readdir(listing) != nil { count += 1 }
        #expect(count == 4, "two files, this directory and the one above")
    }

    @Test func `a pair that will do is kept`() throws {
        let directory = authority.path("state")
        let files = try SelfSignedCertificate.makeIfMissing(names: names, directory: directory)
        let before = try contents(files.certificate)
        _ = try SelfSignedCertificate.makeIfMissing(names: names, directory: directory)
        _ = try SelfSignedCertificate.makeIfMissing(names: ["LOCALHOST."], directory: directory)
        #expect(try contents(files.certificate) == before)
    }

    @Test func `another name, an end in sight or a stray key make a new pair`() throws {
        let directory = authority.path("state")
        let files = try SelfSignedCertificate.makeIfMissing(names: names, directory: directory)
        var before = try contents(files.certificate)
        func isReplaced() throws -> Bool {
            _ = try SelfSignedCertificate.makeIfMissing(names: names + ["door.example"], directory: directory)
            defer { before = (try? contents(files.certificate)) ?? [] }
            return try contents(files.certificate) != before
        }
        #expect(try isReplaced())
        #expect(try !isReplaced())

        unlink(files.key)
        #expect(try isReplaced())
        try write(FileTests.encryptedKey, to: files.key)
        #expect(try isReplaced())

        let hosts = (names + ["door.example"]).compactMap { Host($0) }
        let soon = WallTime(seconds: Int64(time(nil))) + .seconds(29 * 86_400)
        _ = try CertificateRecipe(hosts: hosts, notAfter: soon).make().write(directory: directory)
        before = try contents(files.certificate)
        #expect(try isReplaced())
    }

    @Test func `a certificate from the future is kept, because the clock is wrong`() throws {
        // B52
        let now = WallTime(seconds: Int64(time(nil)))
        let directory = authority.path("state")
        let files = try CertificateRecipe(
            hosts: names.compactMap { Host($0) }, notBefore: now + .seconds(86_400),
            notAfter: now + .seconds(400 * 86_400)
        ).make().write(directory: directory)
        let before = try contents(files.certificate)
        _ = try SelfSignedCertificate.makeIfMissing(names: names, directory: directory)
        #expect(try contents(files.certificate) == before)
    }

    @Test func `one is valid since yesterday`() throws {
        // B52: a peer whose clock is 90 s or 23 h behind accepts it.
        let files = try SelfSignedCertificate.makeIfMissing(names: names, directory: authority.path("state"))
        let server = try TLSServerCredentials(ServerSecurity(identity: files))
        let recipe = CertificateRecipe(hosts: [])
        #expect(recipe.notBefore.seconds <= Int64(time(nil)) - 86_399)
        #expect(
            try TLSPair(ClientSecurity(trust: .file(files.certificate)), server, host: "::1").handshake().client == nil)
    }

    @Test func `a certificate of somebody else is never replaced`() throws {
        let files = try authority.issue(["other.example"])
        let directory = String(files.certificate.dropLast("/certificate.pem".count))
        let before = try contents(files.certificate)
        let error = #expect(throws: TransportError.self) {
            try SelfSignedCertificate.makeIfMissing(names: names, directory: directory)
        }
        #expect(error?.message.contains("\"CN=root.example\"") == true)
        #expect(try contents(files.certificate) == before)
    }

    @Test func `what is no name, or no place, is refused`() throws {
        for names in [[], ["two words"], [""]] {
            let error = #expect(throws: TransportError.self) {
                try SelfSignedCertificate.makeIfMissing(names: names, directory: authority.path("state"))
            }
            #expect(error?.code == .misuse)
        }
        let error = #expect(throws: TransportError.self) {
            try SelfSignedCertificate.makeIfMissing(names: names, directory: "/dev/null/state")
        }
        #expect(error?.code == .system)
        #expect(error?.message.contains("/dev/null/state") == true)
    }

    @Test func `tasks that ask at the same time get the same pair`() async throws {
        let directory = authority.path("state")
        let names = names
        let hashes = try await withThrowingTaskGroup(of: CertificateHashes.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let files = try SelfSignedCertificate.makeIfMissing(names: names, directory: directory)
                    _ = try TLSServerCredentials(ServerSecurity(identity: files))
                    return try CertificateHashes(certificateFile: files.certificate)
                }
            }
            return try await group.reduce(into: Set<CertificateHashes>()) { $0.insert($1) }
        }
        #expect(hashes.count == 1)
    }
}
