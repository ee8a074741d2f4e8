internal import Glibc

extension Trace {
    /// How far into a file lines of a trace are looked for; one has some hundred bytes.
    private static let headLimit = 1 << 20

    /// Why nothing should be added to a file, or nil if it is a trace or can become one. Changes nothing.
    package static func problem(addingTo path: String) -> String? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            guard errno == ENOENT else { return "the file \(path) cannot be written: \(ControlSocket.words(errno))" }
            let folder = folder(of: path)
            return FileCheck.exists(folder) ? nil : "the folder \(folder) does not exist"
        }
        if status.st_mode & S_IFMT == S_IFDIR { return "\(path) is a folder; a file is needed" }
        if let kind = blockingKind(status) { return "\(path) is \(kind); a regular file is needed" }
        guard unsafe access(path, W_OK) == 0 else {
            return "the file \(path) cannot be written: \(ControlSocket.words(errno))"
        }
        guard status.st_size > 0, let head = head(of: path) else { return nil }
        guard (try? read(head, file: path)) == nil, !isTornLine(head) else { return nil }
        return "the file \(path) is there and is no trace, so nothing is added to it; name another"
    }

    /// What a pipe, a terminal or a device is called: it may take nothing for as long as it likes, and the host could then
    /// not end. Nil for a regular file.
    private static func blockingKind(_ status: stat) -> String? {
        switch status.st_mode & S_IFMT {
        case S_IFREG: nil
        case S_IFIFO: "a pipe"
        case S_IFSOCK: "a socket"
        default: "a device"
        }
    }

    /// The folder in which a file lies.
    static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }

    /// Whether this is the beginning of a trace's only line: a host that was killed there must be able to start again.
    private static func isTornLine(_ bytes: [UInt8]) -> Bool {
        !bytes.contains(0x0a)
            && ["afterMilliseconds", "cause", "code", "destination"].contains { key in
                let opening = Array("{\"\(key)\":".utf8)
                return bytes.starts(with: opening) || opening.starts(with: bytes)
            }
    }

    /// The beginning of a file, as much of it as is looked at; nil where it cannot be read.
    private static func head(of path: String) -> [UInt8]? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < headLimit {
            let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return bytes
    }
}
