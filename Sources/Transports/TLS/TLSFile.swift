package import Glibc
package import TransportKit

/// Small files, read and written whole, with errors that name the file.
package enum TLSFile {
    /// The largest file that is read: trust stores have a few hundred KiB.
    private static let limit = 16 << 20

    /// Reads a file.
    ///
    /// - Parameter what: what it is to the user, for example "the private key".
    /// - Parameter isSecret: whether it is refused where everybody on the machine may read or change it (B23).
    package static func read(_ path: String, what: String, isSecret: Bool = false) throws(TransportError) -> Bytes {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure(errno, "\(what) \(path) cannot be read") }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw failure(errno, "\(what) \(path) cannot be read") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TransportError(.misuse, "\(what) \(path) is not a regular file; name a PEM file")
        }
        if isSecret, status.st_mode & 0o007 != 0 {
            throw TransportError(
                .misuse, "\(what) \(path) is open to every user of this machine; run: chmod o= '\(path)'")
        }
        guard status.st_size <= limit else {
            throw TransportError(.misuse, "\(what) \(path) is too large to be a PEM file (\(status.st_size) bytes)")
        }
        var bytes = Bytes(capacity: Int(status.st_size) + 1)
        while bytes.count <= limit {
            var problem: Int32 = 0
            let before = bytes.count
            unsafe bytes.append(unsafeUninitializedCapacity: max(4096, bytes.tailroom)) { room in
                let count = unsafe Glibc.read(descriptor, room.baseAddress, room.count)
                if count < 0 { problem = errno }
                return max(count, 0)
            }
            if problem == EINTR { continue }
            guard problem == 0 else { throw failure(problem, "\(what) \(path) cannot be read") }
            if bytes.count == before { return bytes }
        }
        throw TransportError(.misuse, "\(what) \(path) is too large to be a PEM file")
    }

    /// Replaces a file in one step, so that nobody ever sees half of it.
    package static func write(_ bytes: Bytes, to path: String, mode: mode_t) throws(TransportError) {
        let temporary = "\(path).\(getpid()).tmp"
        unsafe unlink(temporary)
        let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw failure(errno, "\(path) cannot be written") }
        let problem = unsafe bytes.withUnsafeBytes { (all: UnsafeRawBufferPointer) -> Int32 in
            var rest = unsafe all[...]
            while unsafe !rest.isEmpty {
                let count = unsafe Glibc.write(
                    descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return count < 0 ? errno : EIO }
                unsafe rest = rest.dropFirst(count)
            }
            return fsync(descriptor) == 0 ? 0 : errno
        }
        close(descriptor)
        guard problem == 0 else {
            unsafe unlink(temporary)
            throw failure(problem, "\(path) cannot be written")
        }
        guard unsafe rename(temporary, path) == 0 else {
            let problem = errno
            unsafe unlink(temporary)
            throw failure(problem, "\(path) cannot be written")
        }
    }

    /// Locks what a descriptor stands for, for as long as that is open. Whoever was stopped while holding the lock must not
    /// stop this process too, so it gives up after `limit`.
    ///
    /// - Returns: 0 once it is locked, else the `errno`; `EWOULDBLOCK` where others kept it.
    package static func takeTurn(_ descriptor: Int32, within limit: Duration) -> Int32 {
        let deadline = ContinuousClock.now + limit
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EINTR || (errno == EWOULDBLOCK && ContinuousClock.now < deadline) else { return errno }
            usleep(10_000)
        }
        return 0
    }

    /// Makes a directory and those above it, open to nobody else.
    package static func makeDirectory(_ path: String) throws(TransportError) {
        if unsafe access(path, F_OK) == 0 { return }
        if let slash = path.lastIndex(of: "/"), slash > path.startIndex { try makeDirectory(String(path[..<slash])) }
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw failure(errno, "the directory \(path) cannot be made")
        }
    }

    static func failure(_ number: Int32, _ what: String) -> TransportError {
        let reason = unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
        return TransportError(.system, "\(what): \(reason)", number: UInt64(number))
    }
}
