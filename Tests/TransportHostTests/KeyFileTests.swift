import Foundation
import Glibc
import NoiseCarrier
import Testing
import TransportHost
import TransportKit

/// The file of a private key (B23).
@Suite struct KeyFileTests {
    @Test func `A key that was made is read again, and is its owner's alone`() async throws {
        try await withTemporaryFolder { folder in
            let file = "\(folder)/a.key"
            let known = try KeyFile.make(file)
            #expect(try KeyFile.read(file).publicKey == known)
            #expect(try mode(of: file) == 0o600)
            // Nothing else is left behind.
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a.key"])
            #expect(try KeyFile.make("\(folder)/b.key") != known)
        }
    }

    @Test func `What is there is never overwritten`() async throws {
        try await withTemporaryFolder { folder in
            let file = "\(folder)/a.key"
            let known = try KeyFile.make(file)
            let problem = #expect(throws: TransportError.self) { try KeyFile.make(file) }
            #expect(problem?.message.hasPrefix("\(file) is there already and is not overwritten") == true)
            #expect(try KeyFile.read(file).publicKey == known)
            try write("", to: "\(folder)/empty")
            #expect(throws: TransportError.self) { try KeyFile.make("\(folder)/empty") }
            #expect(throws: TransportError.self) { try KeyFile.make("\(folder)/none/a.key") }
        }
    }

    @Test(arguments: [0o640, 0o604, 0o660, 0o602, 0o610, 0o601, 0o644] as [mode_t])
    func `A key that others can open is refused, with what to do`(mode: mode_t) async throws {
        try await withTemporaryFolder { folder in
            let file = "\(folder)/a.key"
            _ = try KeyFile.make(file)
            chmod(file, mode)
            let problem = #expect(throws: TransportError.self) { try KeyFile.read(file) }
            #expect(
                problem?.message.hasPrefix(
                    "the key \(file) is open to others than its owner; run: chmod 600 '\(file)'") == true)
            chmod(file, 0o400)
            #expect(try KeyFile.read(file).publicKey.bytes.count == 32)
        }
    }

    @Test func `A file without a key is refused, and nothing of it is repeated`() async throws {
        try await withTemporaryFolder { folder in
            let file = "\(folder)/a.key"
            let text = StaticPrivateKey().exportText()
            for content in [
                "", "\n", "short", text.dropLast() + "", text + text, text + "\n" + text, " " + text, text + "\n\n x",
            ] {
                try? FileManager.default.removeItem(atPath: file)
                try write(content, to: file)
                chmod(file, 0o600)
                let problem = #expect(throws: TransportError.self) { try KeyFile.read(file) }
                #expect(problem?.message.contains("holds no private key") == true)
                #expect(problem?.message.contains(text.prefix(20)) == false)
            }
            for content in [text, text + "\n", text + "\n\n"] {
                try write(content, to: file)
                chmod(file, 0o600)
                #expect(try KeyFile.read(file).exportText() == text)
            }
            let hex = try KeyFile.read(file).withUnsafeBytes { $0.map { String(format: "%02x", $0) }.joined() }
            try write(hex, to: file)
            chmod(file, 0o600)
            #expect(try KeyFile.read(file).exportText() == text)
            for (path, words) in [
                (folder, "is a folder"), ("\(folder)/none", "does not exist"), ("/dev/null", "is no regular"),
            ] {
                let problem = #expect(throws: TransportError.self) { try KeyFile.read(path) }
                #expect(problem?.message.contains(words) == true, "\(problem?.message ?? "")")
            }
        }
    }

    @Test func `keygen prints the public key and nothing of the private one`() async throws {
        try await withTemporaryFolder { folder in
            let file = "\(folder)/a.key"
            let made = try await Program.run(["keygen", file])
            let key = try KeyFile.read(file)
            #expect(made.code == 0 && made.output == "\(key.publicKey)\n" && made.errors.isEmpty)
            let again = try await Program.run(["keygen", file])
            #expect(again.code == 1 && again.output.isEmpty)
            #expect(again.errors.hasPrefix("transportkit: \(file) is there already"))
            let shown = try await Program.run(["keygen", "--public", file])
            #expect(shown.code == 0 && shown.output == made.output)
            let json = try await Program.run(["keygen", "--public", "--json", file])
            let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: String]
            #expect(object?["publicKey"] == "\(key.publicKey)")
            #expect(object?["home"]?.count == 26 && object?["device"]?.count == 26)
            chmod(file, 0o644)
            let open = try await Program.run(["keygen", "--public", file])
            #expect(open.code == 1 && open.errors.contains("chmod 600"))
            for ended in [made, again, shown, json, open] {
                #expect(!(ended.output + ended.errors).contains(key.exportText()))
            }
        }
    }

    private func mode(of file: String) throws -> mode_t {
        var status = stat()
        try #require(stat(file, &status) == 0)
        return status.st_mode & 0o777
    }
}
