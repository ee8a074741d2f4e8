internal import Glibc
internal import TransportIO
package import TransportKit
package import TransportTLS

/// The secret under which networks are named (R58). It is drawn once per installation.
package enum NetworkKey {
    static let fileName = "network.key"

    /// What stands where the key should.
    private enum Found {
        case key(KeyedHash)
        case nothing
        /// A file that is no key.
        case damaged(String)
        /// Something that is left where it is, so no key can be kept.
        case blocked(String)
    }

    /// Reads the key of a state directory, or draws one and keeps it there.
    ///
    /// Where it cannot be kept, the key lives as long as the process, and so does what is remembered under it. Whatever is
    /// wrong is one warning.
    package static func load(from directory: StateDirectory, log: Log) -> KeyedHash {
        let path = directory.file(fileName)
        let problem: String
        switch read(path, log: log) {
        case .key(let known): return known
        case .nothing:
            // A first start has no memory either.
            problem = hasMemory(directory) ? "\(path) is missing; " : ""
        case .damaged(let words): problem = "\(path) \(words); "
        case .blocked(let words):
            log.warning(
                "\(path) \(words), so the key for the names of networks is not kept: what is remembered says nothing to "
                    + "the next start until that is mended")
            return temporary()
        }
        let drawn = temporary()
        do {
            try directory.make()
            try keep(drawn, at: path)
        } catch {
            log.warning("\(problem)the key for the names of networks is not kept: \(error)")
            return drawn
        }
        if !problem.isEmpty {
            log.warning(
                "\(problem)a new key is drawn, and what \(FilePathMemory.fileName) says of networks is forgotten")
        }
        // Another host may have been faster.
        guard case .key(let kept) = read(path, log: log) else { return drawn }
        return kept
    }

    /// Writes the key again where there is none any more.
    ///
    /// - Returns: whether it was gone.
    static func restore(_ key: KeyedHash, in directory: StateDirectory) throws(TransportError) -> Bool {
        let path = directory.file(fileName)
        var status = stat()
        guard unsafe lstat(path, &status) != 0, errno == ENOENT else { return false }
        try keep(key, at: path)
        return true
    }

    /// A key that is kept nowhere.
    package static func temporary() -> KeyedHash {
        guard let hash = KeyedHash(key: KeyedHash.randomKey()) else {
            preconditionFailure("a drawn key has the right length")
        }
        return hash
    }

    private static func hasMemory(_ directory: StateDirectory) -> Bool {
        unsafe access(directory.file(FilePathMemory.fileName), F_OK) == 0
    }

    private static func read(_ path: String, log: Log) -> Found {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT, ENOTDIR: return .nothing
            case ELOOP: return .blocked("is a link, which is not followed")
            case let number: return unsafe .blocked("cannot be read (\(String(cString: strerror(number))))")
            }
        }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return .blocked(status.st_mode & S_IFMT == S_IFDIR ? "is a folder" : "is no regular file")
        }
        var key = [UInt8](repeating: 0, count: KeyedHash.keyLength + 1)
        let count = unsafe Glibc.read(descriptor, &key, key.count)
        guard count >= 0 else { return unsafe .blocked("cannot be read (\(String(cString: strerror(errno))))") }
        guard count == KeyedHash.keyLength, let hash = KeyedHash(key: Array(key.prefix(count))) else {
            return .damaged("is no key: it has \(status.st_size) bytes, and a key has \(KeyedHash.keyLength)")
        }
        if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o600) != 0 {
            log.warning("\(path) is open to other users of this machine; run: chmod 600 '\(path)'")
        }
        return .key(hash)
    }

    /// Puts the key in place, unless a good one is there.
    private static func keep(_ key: KeyedHash, at path: String) throws(TransportError) {
        let draft = "\(path).\(getpid()).new"
        try TLSFile.write(Bytes(key.key), to: draft, mode: 0o600)
        defer { unsafe unlink(draft) }
        // A link fails where there is one already, so of two hosts that start at once one wins.
        guard unsafe link(draft, path) != 0 else { return }
        guard errno == EEXIST else { throw TransportError(errno: errno, doing: "keeping \(path)") }
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size != KeyedHash.keyLength
        else { return }
        // What stands there is no key: whatever was remembered under it is lost.
        guard unsafe rename(draft, path) == 0 else {
            throw TransportError(errno: errno, doing: "keeping \(path)")
        }
    }
}
