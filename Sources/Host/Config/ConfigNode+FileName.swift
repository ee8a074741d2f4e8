internal import Glibc

extension ConfigNode {
    /// The name of a file or a folder.
    func fileName(_ what: String) throws(ConfigError) -> String {
        let name = try text(what)
        if let problem = FileCheck.problem(naming: name) { throw error(problem) }
        return name
    }

    /// The name of a file or a folder, or nil for the word `none`.
    func fileNameOrNone(_ what: String) throws(ConfigError) -> String? {
        let name = try fileName("\(what), or none")
        if name == "none" { return nil }
        guard name.lowercased() != "none" else {
            throw error("must be \(what), or none, and is '\(name)'; write none, or './\(name)' for one of that name")
        }
        return name
    }
}

/// Looks at files without opening them for good.
enum FileCheck {
    /// Why a name is none of a file, or nil if it can be one.
    static func problem(naming name: String) -> String? {
        if name.isEmpty { return "is empty; a name is needed" }
        guard name.hasPrefix("~") else { return nil }
        return "begins with ~, which a shell replaces and a config file does not; write the whole path"
    }

    /// Whether anything is there.
    static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    /// Why a file cannot be read, or nil if it can.
    static func problem(reading path: String) -> String? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return "the file \(path) \(words(errno))" }
        if status.st_mode & S_IFMT == S_IFDIR { return "\(path) is a folder; a file is needed" }
        guard unsafe access(path, R_OK) == 0 else { return "the file \(path) \(words(errno))" }
        return nil
    }

    private static func words(_ number: Int32) -> String {
        number == ENOENT ? "does not exist" : unsafe "cannot be read: \(String(cString: strerror(number)))"
    }
}
