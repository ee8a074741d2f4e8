internal import TransportKit

/// A config file that has been read: a tree of values with places. Nothing is made of it yet.
public struct HostConfiguration: Sendable {
    /// The folder at which relative file names start.
    public let folder: String
    /// The file it was read from; nil for a text.
    let file: String?
    let root: ConfigNode

    /// Reads a file; file names in it start at its folder.
    public init(file path: String) throws(ConfigErrors) {
        root = try ConfigFile.read(path)
        file = path
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let folder = parts.dropLast().joined(separator: "/")
        self.folder = parts.count > 1 ? (folder.isEmpty ? "/" : folder) : "."
    }

    /// Reads a text.
    ///
    /// - Parameters:
    ///   - text: YAML or JSON.
    ///   - name: what messages call it.
    ///   - folder: where relative file names start.
    public init(text: String, name: String = "config", folder: String = ".") throws(ConfigErrors) {
        root = try ConfigFile.parse(Array(text.utf8), file: name)
        self.folder = folder
        file = nil
    }

    /// The level of the log, also where the rest of the file is not in order.
    var logLevel: LogLevel {
        guard case .scalar(let name, _)? = root["log"]?["level"]?.value else { return .info }
        return LogLevel.allCases.first { "\($0)" == name } ?? .info
    }

    /// Where the host keeps what it knows between its runs, also where the rest of the file is not in order.
    ///
    /// - Returns: nil where it keeps nothing, and where the file names no folder.
    func stateDirectory(_ environment: (String) -> String?) -> StateDirectory? {
        guard let node = root["state"], case .scalar = node.value else {
            return StateDirectory.usual(environment)
        }
        return (try? state(node)).map { StateDirectory(path: path($0)) }
    }

    /// The file to which what carriers see is written, if it is to be and can be.
    var tracePath: String? {
        guard let node = root["trace"] else { return nil }
        return (try? trace(node)).map(path)
    }

    /// Checks `state`; nil for none.
    func state(_ node: ConfigNode) throws(ConfigError) -> String? { try node.fileNameOrNone("a folder") }

    /// Checks `control`; nil for none.
    func control(_ node: ConfigNode) throws(ConfigError) -> String? {
        guard let name = try node.fileNameOrNone("a path") else { return nil }
        let (count, limit) = (path(name).utf8.count, ControlSocket.pathLimit)
        guard count <= limit else {
            throw node.error(
                "must be a path of at most \(limit) bytes, and with its folder has \(count); a socket takes no more")
        }
        return name
    }

    /// Checks `trace`, the file itself included; nil for none.
    func trace(_ node: ConfigNode) throws(ConfigError) -> String? {
        guard let name = try node.fileNameOrNone("a file name") else { return nil }
        let file = path(name)
        guard let problem = Trace.problem(addingTo: file) else { return name }
        // The first run makes the state directory before anything is written there.
        let isMade = Trace.folder(of: file) == stateDirectory(StateDirectory.environment)?.path
        guard isMade, !FileCheck.exists(Trace.folder(of: file)) else { throw node.error(problem) }
        return name
    }

    /// A file that the config names, as a path that can be opened.
    func path(_ name: String) -> String {
        name.hasPrefix("/") || folder == "." ? name : "\(folder)/\(name)"
    }
}
