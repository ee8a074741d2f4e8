internal import Synchronization
internal import TransportKit

/// Where something stands in a config file.
public struct SourcePlace: Sendable, Hashable {
    /// The file, as it was named.
    public var file: String
    /// The line, from 1; nil where the whole file is meant.
    public var line: Int?
    /// The column, from 1, in characters.
    public var column: Int?

    /// Names a place.
    public init(file: String, line: Int? = nil, column: Int? = nil) {
        self.file = file
        self.line = line
        self.column = column
    }
}

extension SourcePlace: CustomStringConvertible {
    /// `file:line:column`, as editors and terminals understand it.
    public var description: String {
        guard let line, let column else { return file }
        return "\(file):\(line):\(column)"
    }
}

/// One thing that is wrong with a config file.
public struct ConfigError: Error, Sendable, Hashable {
    /// Where it stands.
    public var place: SourcePlace
    /// The keys that lead there, such as `listeners.public.url` or `forwards[0].to`; empty for the file itself.
    public var path: String
    /// What is wrong and what is allowed.
    public var message: String

    /// Makes an error.
    public init(_ message: String, at place: SourcePlace, path: String = "") {
        self.message = message
        self.place = place
        self.path = path
    }
}

extension ConfigError: CustomStringConvertible {
    /// `file:line:column: path: what; what is allowed`. Control characters of the file do not get to the terminal.
    public var description: String {
        (path.isEmpty ? "\(place): \(message)" : "\(place): \(path): \(message)").printable(limit: .max)
    }
}

/// Everything that is wrong with a config file, as far as one run can tell.
public struct ConfigErrors: Error, Sendable, Hashable {
    /// The errors, in the order of the file.
    public let errors: [ConfigError]

    /// Orders the errors by their place.
    public init(_ errors: [ConfigError]) {
        self.errors = errors.enumerated().sorted { left, right in
            let leftKey = (left.element.place.line ?? 0, left.element.place.column ?? 0, left.offset)
            let rightKey = (right.element.place.line ?? 0, right.element.place.column ?? 0, right.offset)
            return leftKey < rightKey
        }.map(\.element)
    }
}

extension ConfigErrors: CustomStringConvertible {
    /// One line for each error.
    public var description: String { errors.map(\.description).joined(separator: "\n") }
}

/// Gathers errors, so that one run reports as many as it can.
final class ConfigErrorList: Sendable {
    private let list = Mutex<[ConfigError]>([])

    var errors: [ConfigError] { list.withLock { $0 } }

    func add(_ error: ConfigError) { list.withLock { $0.append(error) } }

    func add(_ more: ConfigErrors) { list.withLock { $0 += more.errors } }

    /// Runs `body`; if it throws, the error is kept and the result is nil.
    func gather<Result>(_ body: () throws(ConfigError) -> Result) -> Result? {
        do {
            return try body()
        } catch {
            add(error)
            return nil
        }
    }

    /// Keeps whatever error a plug-in threw, placed at `node` where it does not say itself where it belongs.
    func add(_ error: any Error, at node: ConfigNode) {
        switch error {
        case let error as ConfigErrors: add(error)
        case let error as ConfigError: add(error)
        case is AlreadyReported: break
        default: add(node.error("\(error)"))
        }
    }
}

/// Stands for an error that is in the list already: what depends on the broken part says nothing of its own.
struct AlreadyReported: Error {}
