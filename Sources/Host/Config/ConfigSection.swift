/// Reads one mapping of the config file key by key and keeps every error, so that one run reports them all.
///
/// `finish()` reports the keys that nobody asked for.
struct ConfigSection {
    let node: ConfigNode
    let errors: ConfigErrorList
    private let entries: [ConfigNode.Entry]
    private var known: [String] = []

    /// Starts on a mapping; anything else is reported, and the section is nil.
    init?(_ node: ConfigNode, _ what: String = "a mapping", errors: ConfigErrorList) {
        guard let entries = errors.gather({ () throws(ConfigError) in try node.entries(what) }) else { return nil }
        self.node = node
        self.errors = errors
        self.entries = entries
    }

    /// The value of a key, or nil where it is not there.
    mutating func optional(_ key: String) -> ConfigNode? {
        known.append(key)
        return entries.first { $0.key == key }?.value
    }

    /// The value of a key; its absence is reported.
    mutating func required(_ key: String, _ what: String) -> ConfigNode? {
        guard let value = optional(key) else {
            errors.add(node.error("'\(key)' is missing; \(what)"))
            return nil
        }
        return value
    }

    /// Reads the value of a key, or takes the default where it is not there. Nil means that an error was reported.
    mutating func value<Result>(
        _ key: String, default fallback: Result, _ read: (ConfigNode) throws(ConfigError) -> Result
    ) -> Result? {
        guard let value = optional(key) else { return fallback }
        return errors.gather { () throws(ConfigError) in try read(value) }
    }

    /// Reports every key that was not asked for.
    func finish() {
        errors.add(ConfigErrors(Self.unknownKeys(in: node, entries: entries, known: known)))
    }

    /// One error for each key that is not known.
    static func unknownKeys(in node: ConfigNode, entries: [ConfigNode.Entry], known: [String]) -> [ConfigError] {
        entries.filter { !known.contains($0.key) }.map { entry in
            let hint = Words.nearest(to: entry.key, among: known).map { "did you mean '\($0)'? " } ?? ""
            let allowed = known.isEmpty ? "no key is allowed here" : "allowed are \(Words.list(known))"
            return ConfigError(
                "unknown key; \(hint)\(allowed)", at: entry.keyPlace, path: node.path(of: entry.key))
        }
    }
}
