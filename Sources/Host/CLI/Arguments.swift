internal import TransportHost

/// The words after a verb, checked against its flags.
struct Arguments {
    /// The words that are no flags.
    let operands: [String]
    private let values: [String: [String]]

    /// Sorts the words; `--flag value` and `--flag=value` are the same, and after `--` no word is a flag.
    init(_ words: [String], verb: any Verb.Type) throws(UsageError) {
        var operands: [String] = []
        var values: [String: [String]] = [:]
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                operands += rest
                break
            }
            guard word.hasPrefix("-"), word.count > 1 else {
                operands.append(word)
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let flag = verb.flags.first(where: { $0.name == parts[0] }) else {
                throw Self.unknown(parts[0], verb)
            }
            guard flag.isRepeatable || values[flag.name] == nil else {
                throw UsageError("\(flag.name) stands twice; once is enough")
            }
            if let what = flag.value {
                guard let value = parts.count == 2 ? parts[1] : rest.popFirst() else {
                    throw UsageError("\(flag.name) needs \(what)")
                }
                values[flag.name, default: []].append(value)
            } else {
                guard parts.count == 1 else { throw UsageError("\(flag.name) takes no value") }
                values[flag.name] = [""]
            }
        }
        guard verb.operands.contains(operands.count) else {
            throw UsageError("usage: transportkit \(verb.name) \(verb.usage)")
        }
        self.operands = operands
        self.values = values
    }

    private static func unknown(_ flag: String, _ verb: any Verb.Type) -> UsageError {
        let names = verb.flags.map(\.name) + ["--help"]
        let hint = Words.nearest(to: flag, among: names).map { "did you mean '\($0)'? " } ?? ""
        return UsageError("\(verb.name): unknown flag '\(flag)'; \(hint)there are \(Words.list(names))")
    }

    /// Whether a flag stands there.
    func has(_ flag: String) -> Bool { values[flag] != nil }

    /// The value of a flag.
    func value(_ flag: String) -> String? { values[flag]?.last }

    /// Every value of a flag that may stand several times.
    func all(_ flag: String) -> [String] { values[flag] ?? [] }
}
