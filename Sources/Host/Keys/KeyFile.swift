internal import Glibc
package import NoiseCarrier
internal import TransportIO
package import TransportKit
internal import TransportTLS

/// The file in which an end keeps its private key: one line of text, open to its owner alone (B23).
package enum KeyFile {
    /// A key has 43 or 64 characters.
    private static let sizeLimit = 128

    /// Draws a key and keeps it in a new file.
    ///
    /// - Returns: what others know it by.
    /// - Throws: also where the file is there already: a key that is overwritten is lost for good.
    package static func make(_ path: String) throws(TransportError) -> StaticPublicKey {
        guard !FileCheck.exists(path) else { throw taken(path) }
        let key = StaticPrivateKey()
        let draft = "\(path).\(getpid()).new"
        try TLSFile.write(Bytes(key.exportText() + "\n"), to: draft, mode: 0o600)
        defer { unsafe unlink(draft) }
        // A link never takes the place of anything, and what it names is whole from the start.
        guard unsafe link(draft, path) == 0 else {
            throw errno == EEXIST ? taken(path) : TransportError(errno: errno, doing: "keeping the key \(path)")
        }
        return key.publicKey
    }

    private static func taken(_ path: String) -> TransportError {
        TransportError(
            .misuse,
            "\(path) is there already and is not overwritten; name another file, or ask for its public key with "
                + "transportkit keygen --public '\(path)'")
    }

    /// Reads the key of a file that nobody but its owner can open.
    package static func read(_ path: String) throws(TransportError) -> StaticPrivateKey {
        if let problem = FileCheck.problem(reading: path) { throw TransportError(.misuse, problem) }
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw TransportError(errno: errno, doing: "opening the key \(path)") }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw TransportError(.misuse, "\(path) is no regular file; name one that holds a key")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw TransportError(
                .misuse,
                "the key \(path) is open to others than its owner; run: chmod 600 '\(path)', and make a new one if "
                    + "somebody may have read it")
        }
        var bytes = [UInt8](repeating: 0, count: sizeLimit)
        // The text that is made of it is not wiped either, but it is short-lived and on no disk.
        defer {
            unsafe bytes.withUnsafeMutableBytes {
                if let start = $0.baseAddress { unsafe explicit_bzero(start, $0.count) }
            }
        }
        let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { throw TransportError(errno: errno, doing: "reading the key \(path)") }
        let line = bytes[..<count].prefix { $0 != 0x0a }
        let isAlone = bytes[line.endIndex..<count].allSatisfy { $0 == 0x0a }
        guard isAlone, count < bytes.count, let key = StaticPrivateKey(String(decoding: line, as: UTF8.self)) else {
            throw TransportError(
                .misuse,
                "the file \(path) holds no private key, which is one line of 43 characters; make one with "
                    + "transportkit keygen FILE")
        }
        return key
    }
}
