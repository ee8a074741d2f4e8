internal import Glibc

extension TLSFile {
    /// What a living process writes is in place long before that.
    private static let longestWrite: time_t = 60

    /// Removes what processes that have died while they wrote files of these names left behind: `name.PID.tmp` and, where
    /// a file is drafted first, `name.PID.new` and `name.PID.new.PID.tmp`.
    package static func sweep(_ directory: String, names: [String]) {
        guard let listing = unsafe opendir(directory) else { return }
        defer { unsafe closedir(listing) }
        while let entry = unsafe readdir(listing) {
            let found = unsafe withUnsafePointer(to: &entry.pointee.d_name) { start in
                unsafe start.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            guard let process = names.lazy.compactMap({ owner(of: found, name: $0) }).first else { continue }
            let path = "\(directory)/\(found)"
            var status = stat()
            guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            // In a container each host may have the number that the one before had.
            let isOwn = process == getpid() && time(nil) - status.st_mtim.tv_sec > longestWrite
            let isDead = process != getpid() && kill(process, 0) != 0 && errno == ESRCH
            if isOwn || isDead { unsafe unlink(path) }
        }
    }

    /// The process that a temporary file belongs to; nil where it is none of that name.
    static func owner(of file: String, name: String) -> pid_t? {
        guard file.hasPrefix(name + ".") else { return nil }
        let words = file.dropFirst(name.count + 1).split(separator: ".", omittingEmptySubsequences: false)
        guard let first = words.first, let process = pid_t(first), process > 0, "\(process)" == first else {
            return nil
        }
        switch words.dropFirst().map(String.init) {
        case ["tmp"], ["new"], ["new", String(first), "tmp"]: return process
        default: return nil
        }
    }
}
