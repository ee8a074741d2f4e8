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
    /// - Returns: nil where it keeps nothing.
    func stateDirectory(_ environment: (String) -> String?) -> StateDirectory? {
        guard case .scalar(let name, _)? = root["state"]?.value else {
            return StateDirectory.usual(environment)
        }
        return name == "none" ? nil : StateDirectory(path: path(name))
    }

    /// The file to which what carriers see is written, if it is to be.
    var tracePath: String? {
        guard case .scalar(let name, _)? = root["trace"]?.value else { return nil }
        return path(name)
    }

    /// A file that the config names, as a path that can be opened.
    func path(_ name: String) -> String {
        name.hasPrefix("/") || folder == "." ? name : "\(folder)/\(name)"
    }
}
