internal import Glibc
internal import TransportKit
internal import TransportTLS

/// The folder in which a host keeps what it knows from one run to the next. Nobody else may read it.
package struct StateDirectory: Sendable, Hashable {
    /// Where it is.
    package let path: String

    /// A folder that is known already.
    package init(path: String) {
        self.path = path
    }

    /// The usual place: what systemd names, else the one for programs of this user.
    ///
    /// - Parameter environment: the value of a variable.
    /// - Returns: nil where the environment names none.
    package static func usual(_ environment: (String) -> String?) -> StateDirectory? {
        // systemd.exec(5): several folders are joined with colons.
        if let path = absolute(environment("STATE_DIRECTORY")?.split(separator: ":").first.map(String.init)) {
            return StateDirectory(path: path)
        }
        if let path = absolute(environment("XDG_STATE_HOME")) { return StateDirectory(path: "\(path)/transportkit") }
        if let path = absolute(environment("HOME")) { return StateDirectory(path: "\(path)/.local/state/transportkit") }
        return nil
    }

    /// The variable of this process.
    package static func environment(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// The XDG base directory specification has relative paths ignored.
    private static func absolute(_ path: String?) -> String? {
        path.flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// A file in it.
    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Makes it where it is missing.
    func make() throws(TransportError) { try TLSFile.makeDirectory(path) }
}
