internal import Glibc
internal import TransportIO
package import TransportKit
package import TransportTLS

/// The secret under which networks are named (R58). It is drawn once per installation.
package enum NetworkKey {
    static let fileName = "network.key"

    /// Reads the key of a state directory, or draws one and keeps it there.
    ///
    /// Where it cannot be kept, the key lives as long as the process, and so does what is remembered under it.
    package static func load(from directory: StateDirectory, log: Log) -> KeyedHash {
        let path = directory.file(fileName)
        if let known = read(path, log: log) { return known }
        let key = KeyedHash.randomKey()
        do {
            try directory.make()
            try keep(key, at: path)
        } catch {
            log.warning("the key for the names of networks is not kept: \(error)")
        }
        // Another host may have been faster.
        return read(path, log: log) ?? drawn(key)
    }

    /// A key that is kept nowhere.
    package static func temporary() -> KeyedHash { drawn(KeyedHash.randomKey()) }

    private static func drawn(_ key: [UInt8]) -> KeyedHash {
        guard let hash = KeyedHash(key: key) else { preconditionFailure("a drawn key has the right length") }
        return hash
    }

    private static func read(_ path: String, log: Log) -> KeyedHash? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o600) != 0 {
            log.warning("\(path) is open to other users of this machine; run: chmod 600 '\(path)'")
        }
        var key = [UInt8](repeating: 0, count: KeyedHash.keyLength + 1)
        let count = unsafe Glibc.read(descriptor, &key, key.count)
        return count == KeyedHash.keyLength ? KeyedHash(key: Array(key.prefix(count))) : nil
    }

    /// Puts the key in place, unless a good one is there.
    private static func keep(_ key: [UInt8], at path: String) throws(TransportError) {
        let draft = "\(path).\(getpid()).new"
        try TLSFile.write(Bytes(key), to: draft, mode: 0o600)
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
