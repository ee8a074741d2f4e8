/// One value of a config file, with its place and the keys that lead to it.
package struct ConfigNode: Sendable {
    /// What the value is.
    package enum Value: Sendable {
        /// Nothing: an empty value, `~` or `null`.
        case null
        /// A word or text. `isQuoted` tells `"5"` from `5`.
        case scalar(String, isQuoted: Bool)
        case list([ConfigNode])
        case mapping([Entry])
    }

    /// One key of a mapping and its value.
    package struct Entry: Sendable {
        package var key: String
        package var keyPlace: SourcePlace
        package var value: ConfigNode
    }

    package var value: Value
    package var place: SourcePlace
    package var path: String

    /// An error at this value.
    package func error(_ message: String) -> ConfigError { ConfigError(message, at: place, path: path) }

    /// The path of a key below this node.
    package func path(of key: String) -> String {
        let needsQuotes = key.isEmpty || key.contains { $0 == "." || $0 == "[" || $0.isWhitespace }
        let word = needsQuotes ? "\"\(key)\"" : key
        return path.isEmpty ? word : "\(path).\(word)"
    }

    /// The value under a key of a mapping.
    package subscript(key: String) -> ConfigNode? {
        guard case .mapping(let entries) = value else { return nil }
        return entries.first { $0.key == key }?.value
    }

    /// The same mapping without some keys.
    package func without(_ keys: Set<String>) -> ConfigNode {
        guard case .mapping(let entries) = value else { return self }
        var rest = self
        rest.value = .mapping(entries.filter { !keys.contains($0.key) })
        return rest
    }

    /// What the value is, in words.
    package var kind: String {
        switch value {
        case .null: "empty"
        case .scalar(let text, let isQuoted):
            isQuoted ? "text" : Int64(text) != nil ? "a number" : text == "true" || text == "false" ? "\(text)" : "text"
        case .list: "a list"
        case .mapping: "a mapping"
        }
    }

    // MARK: - Reading a value

    /// The entries of a mapping.
    package func entries(_ what: String = "a mapping") throws(ConfigError) -> [Entry] {
        guard case .mapping(let entries) = value else { throw error("must be \(what), and is \(kind)") }
        return entries
    }

    /// The elements of a list.
    package func elements(of what: String) throws(ConfigError) -> [ConfigNode] {
        guard case .list(let elements) = value else { throw error("must be a list of \(what), and is \(kind)") }
        return elements
    }

    /// Text: any quoted scalar, or a plain one that is not a number, `true` or `false`.
    package func text(_ what: String = "text") throws(ConfigError) -> String {
        guard case .scalar(let text, let isQuoted) = value else { throw error("must be \(what), and is \(kind)") }
        guard isQuoted || kind == "text" else {
            throw error("must be \(what), and is \(kind); put it in quotes if it is meant as text")
        }
        guard !text.contains("\0") else { throw error("must be \(what), and holds a zero byte") }
        return text
    }

    /// `true` or `false`, nothing else.
    package func boolean() throws(ConfigError) -> Bool {
        guard case .scalar(let text, isQuoted: false) = value, let flag = Bool(text) else {
            throw error("must be true or false, and is \(quoted)")
        }
        return flag
    }

    /// A whole number within a range, without quotes.
    package func integer<Number: FixedWidthInteger>(_ range: ClosedRange<Number>) throws(ConfigError) -> Number {
        let allowed =
            range == Number.min...Number.max
            ? "must be a whole number" : "must be a whole number from \(range.lowerBound) to \(range.upperBound)"
        guard case .scalar(let text, let isQuoted) = value else { throw error("\(allowed), and is \(kind)") }
        guard !isQuoted else { throw error("\(allowed), and is text; write it without quotes") }
        guard !text.hasPrefix("+"), let number = Number(text), range.contains(number) else {
            throw error("\(allowed), and is \(quoted)")
        }
        return number
    }

    /// A number, without quotes.
    package func number() throws(ConfigError) -> Double {
        guard case .scalar(let text, isQuoted: false) = value, let number = Double(text), number.isFinite,
            text.utf8.allSatisfy({ !(0x41...0x5a).contains($0) && ($0 < 0x61 || $0 == 0x65) })
        else { throw error("must be a number, and is \(quoted)") }
        return number
    }

    /// A duration such as `250ms`, `5s`, `2m`, `1h` or `1d`.
    package func duration() throws(ConfigError) -> Duration {
        guard case .scalar(let text, _) = value, let duration = Duration(configText: text) else {
            throw error("must be a duration such as 250ms, 5s, 2m, 1h or 1d, and is \(quoted)")
        }
        return duration
    }

    /// One of some words.
    package func word<Word>(of words: KeyValuePairs<String, Word>) throws(ConfigError) -> Word {
        let names = words.map(\.key)
        guard case .scalar(let text, _) = value else {
            throw error("must be \(Words.list(names, joint: "or")), and is \(kind)")
        }
        guard let word = words.first(where: { $0.key == text }) else {
            throw error("must be \(Words.list(names, joint: "or")), and is \(quoted)")
        }
        return word.value
    }

    /// The value as it is quoted in a message: scalars themselves, cut where they are long, else what they are.
    private var quoted: String {
        switch value {
        case .null, .list, .mapping: kind
        case .scalar(let text, _): text.count > 60 ? "'\(text.prefix(60))…'" : "'\(text)'"
        }
    }
}

extension Duration {
    /// Reads a whole number with a unit: `ms`, `s`, `m`, `h` or `d`.
    package init?(configText text: String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty, digits.count <= 9, let count = Int64(digits) else { return nil }
        switch text[digits.endIndex...] {
        case "ms": self = .milliseconds(count)
        case "s": self = .seconds(count)
        case "m": self = .seconds(count * 60)
        case "h": self = .seconds(count * 3600)
        case "d": self = .seconds(count * 86_400)
        default: return nil
        }
    }
}
