internal import Glibc
internal import TransportTLS

/// The local socket on which a running host answers questions about itself (B72).
///
/// Only its owner can open it, whatever the umask. One that a crashed host has left behind is replaced; one behind which
/// somebody lives, and anything that is no socket, is left alone.
package enum ControlSocket {
    /// `sockaddr_un` has room for 108 bytes, the last of which is zero.
    static let pathLimit = 107

    /// Makes the socket.
    ///
    /// - Returns: a descriptor that listens.
    package static func bind(_ path: String) throws(ControlError) -> Int32 {
        guard path.utf8.count <= pathLimit else {
            throw ControlError(
                "the control socket \(path) cannot be made: the path has \(path.utf8.count) bytes, and \(pathLimit) are "
                    + "allowed; name a shorter one with 'control'")
        }
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        // Of two hosts that find the same remains at once, the second must not remove what the first has made.
        let turn = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard turn >= 0 else {
            let reason = errno == ENOENT ? "the folder \(folder) is missing" : words(errno)
            throw ControlError("the control socket \(path) cannot be made: \(reason)")
        }
        defer { close(turn) }
        let problem = TLSFile.takeTurn(turn, within: .seconds(1))
        guard problem == 0 else {
            throw ControlError(
                "the control socket \(path) cannot be made: "
                    + (problem == EWOULDBLOCK ? "somebody else keeps the folder \(folder) locked" : words(problem)))
        }
        try clear(path)
        return try listen(at: path)
    }

    /// Connects to a host.
    ///
    /// - Returns: nil where nobody is there: no socket, or one that a host has left behind.
    static func connect(_ path: String) throws(ControlError) -> Int32? {
        guard path.utf8.count <= pathLimit else { return nil }
        let descriptor = try make(path)
        if unsafe withAddress(path, { unsafe Glibc.connect(descriptor, $0, $1) }) == 0 { return descriptor }
        let problem = errno
        close(descriptor)
        if [ENOENT, ECONNREFUSED, ENOTDIR].contains(problem) { return nil }
        // unix(7): so many wait to be let in already.
        if problem == EAGAIN { throw ControlError("the transportkit at \(path) is busy or stuck", isTaken: true) }
        throw ControlError("the control socket \(path) cannot be opened: \(words(problem))")
    }

    /// Removes a socket, where it is still the one that was made.
    static func remove(_ path: String, made status: stat) {
        var now = stat()
        guard unsafe lstat(path, &now) == 0, now.st_ino == status.st_ino, now.st_dev == status.st_dev else { return }
        unsafe unlink(path)
    }

    private static func clear(_ path: String) throws(ControlError) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            guard errno == ENOENT else {
                throw ControlError("the control socket \(path) cannot be made: \(words(errno))")
            }
            return
        }
        let kind: String? =
            switch status.st_mode & S_IFMT {
            case S_IFSOCK: nil
            case S_IFDIR: "a folder"
            case S_IFLNK: "a symbolic link"
            case S_IFREG: "a file"
            default: "something else"
            }
        if let kind {
            throw ControlError("the control socket \(path) cannot be made: \(kind) stands there, and is left alone")
        }
        let isLiving: Bool
        do throws(ControlError) {
            let living = try connect(path)
            isLiving = living != nil
            if let living { close(living) }
        } catch {
            guard error.isTaken else { throw error }
            isLiving = true
        }
        if isLiving {
            throw ControlError(
                "another transportkit answers at \(path): it runs the same config, or 'control' names the same socket",
                isTaken: true)
        }
        guard unsafe unlink(path) == 0 || errno == ENOENT else {
            throw ControlError("the control socket \(path), left behind by another host, stays: \(words(errno))")
        }
    }

    private static func listen(at path: String) throws(ControlError) -> Int32 {
        let descriptor = try make(path)
        // unix(7): the new file takes the mode of the socket, less the umask, so it is never open to others …
        let isBound =
            unsafe fchmod(descriptor, 0o600) == 0 && withAddress(path) { unsafe Glibc.bind(descriptor, $0, $1) } == 0
        // … and whatever the umask is, its owner can open it.
        let isMade = unsafe isBound && chmod(path, 0o600) == 0 && Glibc.listen(descriptor, 16) == 0
        guard isMade else {
            let problem = errno
            close(descriptor)
            throw ControlError("the control socket \(path) cannot be made: \(words(problem))")
        }
        return descriptor
    }

    private static func make(_ path: String) throws(ControlError) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else {
            throw ControlError("the control socket \(path) cannot be opened: \(words(errno))")
        }
        return descriptor
    }

    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
            for (index, byte) in path.utf8.enumerated() { unsafe room[index] = byte }
        }
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    static func words(_ number: Int32) -> String { unsafe String(cString: strerror(number)) }
}

/// Why a host cannot be asked, or cannot be made answer. A sentence for a person.
package struct ControlError: Error, CustomStringConvertible {
    /// The sentence.
    package let description: String
    /// Somebody else lives behind the socket.
    package let isTaken: Bool

    package init(_ description: String, isTaken: Bool = false) {
        self.description = description
        self.isTaken = isTaken
    }
}
