internal import Glibc

/// Reads the text of a config file as a tree of values with places.
///
/// The file is YAML, so JSON too, in a strict form: one document, no anchors, aliases, tags or directives, no key twice,
/// no comma before a closing bracket, at most 1 MiB, 32 levels and 65,536 values.
package enum ConfigFile {
    package static let byteLimit = 1 << 20
    package static let depthLimit = 32
    package static let valueLimit = 65_536

    /// Reads a file.
    package static func read(_ path: String) throws(ConfigErrors) -> ConfigNode {
        let bytes: [UInt8]
        do {
            bytes = try contents(of: path)
        } catch {
            throw ConfigErrors([ConfigError("cannot be read: \(error.reason)", at: SourcePlace(file: path))])
        }
        return try parse(bytes, file: path)
    }

    /// Reads a text; `file` is what messages call it.
    package static func parse(_ utf8: [UInt8], file: String) throws(ConfigErrors) -> ConfigNode {
        do {
            try checkEncoding(utf8, file: file)
            var builder = TreeBuilder(file: file)
            var parser = try YAMLParser(utf8)
            let root = try builder.build(&parser)
            var tokens = try YAMLParser(utf8)
            if let (line, column) = try tokens.firstTrailingComma() {
                throw ConfigError(
                    "a comma stands before the closing bracket; leave it out",
                    at: SourcePlace(file: file, line: line, column: column))
            }
            return root
        } catch let failure as YAMLParser.Failure {
            let place = SourcePlace(file: file, line: failure.line, column: failure.column)
            throw ConfigErrors([ConfigError("is not valid YAML: \(failure.message)", at: place)])
        } catch let error as ConfigError {
            throw ConfigErrors([error])
        } catch {
            throw ConfigErrors([ConfigError("\(error)", at: SourcePlace(file: file))])
        }
    }

    // MARK: - Bytes

    private struct ReadFailure: Error {
        var reason: String

        init(_ reason: String) { self.reason = reason }

        init(errno number: Int32) { unsafe reason = String(cString: strerror(number)) }
    }

    private static func contents(of path: String) throws(ReadFailure) -> [UInt8] {
        // Without O_NONBLOCK a named pipe in place of the file would hang the start.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw ReadFailure(errno: errno) }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw ReadFailure(errno: errno) }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw ReadFailure("it is a directory") }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
            guard count >= 0 else {
                if errno == EINTR { continue }
                throw ReadFailure(errno: errno)
            }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= byteLimit else { throw ReadFailure("it has more than \(byteLimit) bytes") }
        }
    }

    private static func checkEncoding(_ utf8: [UInt8], file: String) throws(ConfigError) {
        func error(_ message: String, line: Int = 1, column: Int = 1) -> ConfigError {
            ConfigError(message, at: SourcePlace(file: file, line: line, column: column))
        }
        guard utf8.count <= byteLimit else { throw error("has more than \(byteLimit) bytes") }
        if utf8.starts(with: [0xef, 0xbb, 0xbf]) {
            throw error("starts with a byte order mark; save it as UTF-8 without one")
        }
        if utf8.starts(with: [0xff, 0xfe]) || utf8.starts(with: [0xfe, 0xff]) {
            throw error("is UTF-16; save it as UTF-8 without a byte order mark")
        }
        guard String(validating: utf8, as: UTF8.self) == nil else { return }
        let valid = validPrefix(of: utf8)
        let lines = String(decoding: valid, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        throw error(
            "is not UTF-8 from here on", line: max(lines.count, 1), column: (lines.last?.unicodeScalars.count ?? 0) + 1)
    }

    /// What stands before the first byte that is not UTF-8.
    private static func validPrefix(of utf8: [UInt8]) -> ArraySlice<UInt8> {
        var decoder = UTF8()
        var bytes = utf8.makeIterator()
        var length = 0
        while case .scalarValue(let scalar) = decoder.decode(&bytes) { length += UTF8.width(scalar) }
        return utf8[..<min(length, utf8.count)]
    }
}

/// Makes the tree out of events.
private struct TreeBuilder {
    let file: String
    private var values = 0

    init(file: String) {
        self.file = file
    }

    mutating func build(_ parser: inout YAMLParser) throws -> ConfigNode {
        var root: ConfigNode?
        while true {
            let located = try parser.next()
            switch located.event {
            case .streamStart, .documentEnd:
                continue
            case .documentStart(let hasDirectives):
                if hasDirectives { throw error("directives are not supported; leave the line with % out", located) }
                if root != nil { throw error("a second document begins here; one is allowed", located) }
                root = try node(parser.next(), &parser, path: "", depth: 0)
            case .streamEnd:
                guard let root else {
                    throw ConfigError(
                        "is empty; listeners, carriers and forwards are what it may hold",
                        at: SourcePlace(file: file, line: 1, column: 1))
                }
                return root
            case .alias, .scalar, .sequenceStart, .sequenceEnd, .mappingStart, .mappingEnd:
                throw error("is not valid YAML: a value stands outside a document", located)
            }
        }
    }

    private mutating func node(
        _ located: YAMLParser.Located, _ parser: inout YAMLParser, path: String, depth: Int
    ) throws -> ConfigNode {
        try check(located, path: path, depth: depth)
        var node = ConfigNode(value: .null, place: place(located), path: path)
        switch located.event {
        case .scalar(let text, let isQuoted):
            let isNull = !isQuoted && ["", "~", "null", "Null", "NULL"].contains(text)
            node.value = isNull ? .null : .scalar(text, isQuoted: isQuoted)
        case .sequenceStart:
            var elements: [ConfigNode] = []
            while true {
                let next = try parser.next()
                if case .sequenceEnd = next.event { break }
                let elementPath = "\(path)[\(elements.count)]"
                elements.append(try self.node(next, &parser, path: elementPath, depth: depth + 1))
            }
            node.value = .list(elements)
        case .mappingStart:
            node.value = .mapping(try entries(of: node, &parser, depth: depth))
        case .streamStart, .streamEnd, .documentStart, .documentEnd, .alias, .sequenceEnd, .mappingEnd:
            throw error("is not valid YAML: a value is missing", located)
        }
        return node
    }

    private mutating func entries(
        of node: ConfigNode, _ parser: inout YAMLParser, depth: Int
    ) throws -> [ConfigNode.Entry] {
        var entries: [ConfigNode.Entry] = []
        var lines: [String: Int] = [:]
        while true {
            let located = try parser.next()
            if case .mappingEnd = located.event { return entries }
            try check(located, path: node.path, depth: depth + 1)
            guard case .scalar(let key, _) = located.event else {
                throw error("a key must be a word or text", located, path: node.path)
            }
            let path = node.path(of: key)
            if let line = lines[key] {
                throw error("the key stands here a second time, first in line \(line)", located, path: path)
            }
            lines[key] = located.line
            let value = try self.node(parser.next(), &parser, path: path, depth: depth + 1)
            entries.append(ConfigNode.Entry(key: key, keyPlace: place(located), value: value))
        }
    }

    private mutating func check(_ located: YAMLParser.Located, path: String, depth: Int) throws(ConfigError) {
        if case .alias = located.event {
            throw error("aliases are not supported; write the value out", located, path: path)
        }
        if located.hasAnchor {
            throw error("anchors are not supported; leave the word with & out", located, path: path)
        }
        if located.hasTag { throw error("tags are not supported; leave the word with ! out", located, path: path) }
        values += 1
        guard values <= ConfigFile.valueLimit else {
            throw error("there are more than \(ConfigFile.valueLimit) values", located, path: path)
        }
        guard depth <= ConfigFile.depthLimit else {
            throw error("there are more than \(ConfigFile.depthLimit) levels", located, path: "")
        }
    }

    private func place(_ located: YAMLParser.Located) -> SourcePlace {
        SourcePlace(file: file, line: located.line, column: located.column)
    }

    private func error(_ message: String, _ located: YAMLParser.Located, path: String = "") -> ConfigError {
        ConfigError(message, at: place(located), path: path)
    }
}
