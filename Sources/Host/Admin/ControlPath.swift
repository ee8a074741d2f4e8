internal import Glibc
internal import TransportKit
internal import TransportTLS

/// Where the control socket of a host is.
enum ControlPath {
    private static let (prefix, suffix) = ("control-", ".sock")

    /// The folder for sockets: what systemd names for things that live as long as the service, else the state directory.
    static func usualFolder(_ environment: (String) -> String?) -> String? {
        let runtime = environment("RUNTIME_DIRECTORY")?.split(separator: ":").first.map(String.init)
        return runtime ?? StateDirectory.usual(environment)?.path
    }

    /// The name for a host that runs this file: the same file, the same socket.
    static func usualName(for file: String) -> String? {
        let hash = KeyedHash(key: [UInt8](repeating: 0, count: KeyedHash.keyLength))
        return hash?.name(wholePath(of: file)).map { "\(prefix)\($0.prefix(12))\(suffix)" }
    }

    /// The path of a file from the root on.
    static func wholePath(of file: String) -> String {
        let whole = unsafe realpath(file, nil)
        defer { unsafe free(whole) }
        return unsafe whole.map { unsafe String(cString: $0) } ?? file
    }

    static func isUsualName(_ name: String) -> Bool { name.hasPrefix(prefix) && name.hasSuffix(suffix) }
}

extension HostConfiguration {
    /// The path of its control socket; nil where it has none.
    func controlPath(_ environment: (String) -> String?) -> String? {
        if let chosen = chosenControlPath { return chosen == "none" ? nil : path(chosen) }
        guard let file, let name = ControlPath.usualName(for: file) else { return nil }
        if case .scalar? = root["state"]?.value {
            return stateDirectory(environment)?.file(name)
        }
        return ControlPath.usualFolder(environment).map { "\($0)/\(name)" }
    }

    /// What the file says, as it stands there.
    var chosenControlPath: String? {
        guard case .scalar(let name, _)? = root["control"]?.value else { return nil }
        return name
    }
}
