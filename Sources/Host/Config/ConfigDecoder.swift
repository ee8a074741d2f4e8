/// Decodes the tree of a config file into the options struct of a plug-in.
///
/// Every error has the place of the value it is about. Keys that the struct does not know are errors; as many of them as
/// there are, also where a value was wrong before. `Duration` reads `250ms` and the like.
final class ConfigDecoder: Decoder {
    let node: ConfigNode
    let errors: ConfigErrorList
    let codingPath: [any CodingKey]
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private let hostKeys: [String]
    private var known: [String] = []
    private var knowsKey: ((String) -> Bool)?
    private var children: [ConfigDecoder] = []

    init(node: ConfigNode, errors: ConfigErrorList, hostKeys: [String] = [], codingPath: [any CodingKey] = []) {
        self.node = node
        self.errors = errors
        self.hostKeys = hostKeys
        self.codingPath = codingPath
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let entries = try node.entries()
        knowsKey = { Key(stringValue: $0) != nil }
        if let listed = Key.self as? any CaseIterable.Type {
            known += Self.names(listed)
        }
        return KeyedDecodingContainer(ConfigKeyedContainer(decoder: self, entries: entries))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        ConfigUnkeyedContainer(decoder: self, elements: try node.elements(of: "values"))
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        ConfigSingleContainer(decoder: self)
    }

    /// Called by the containers for each key that the type asks for.
    func asks(for key: String) {
        if !known.contains(key) { known.append(key) }
    }

    /// A decoder for a value below this one.
    func child(_ node: ConfigNode, key: any CodingKey) -> ConfigDecoder {
        let child = ConfigDecoder(node: node, errors: errors, codingPath: codingPath + [key])
        children.append(child)
        return child
    }

    /// Reports the keys that the type has no use for, here and below.
    func reportUnknownKeys() {
        if let knowsKey, case .mapping(let entries) = node.value {
            let unknown = entries.filter { !(known.contains($0.key) || knowsKey($0.key) && isEnum) }
            for error in ConfigSection.unknownKeys(in: node, entries: unknown, known: hostKeys + known) {
                errors.add(error)
            }
        }
        for child in children { child.reportUnknownKeys() }
    }

    /// Whether the type names its keys one by one; a dictionary knows every key and has asked for all there are.
    private var isEnum: Bool { knowsKey?("\u{1}") == false }

    /// The error with a place, whatever it was.
    static func placed(_ error: any Error, at node: ConfigNode) -> ConfigError {
        switch error {
        case let error as ConfigError: error
        case let error as DecodingError: node.error(words(error))
        default: node.error("\(error)")
        }
    }

    private static func words(_ error: DecodingError) -> String {
        switch error {
        case .dataCorrupted(let context): context.debugDescription
        case .keyNotFound(let key, _): "'\(key.stringValue)' is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context): context.debugDescription
        @unknown default: "\(error)"
        }
    }

    private static func names<Cases: CaseIterable>(_ type: Cases.Type) -> [String] {
        type.allCases.compactMap { ($0 as? any CodingKey)?.stringValue }
    }

    /// Decodes the value of `node`.
    func decode<Value: Decodable>(_ type: Value.Type, from node: ConfigNode, key: any CodingKey) throws -> Value {
        // The compiler cannot know that `Value` is the type it was just compared with, hence the casts.
        switch type {
        case is Duration.Type:
            if let duration = try node.duration() as? Value { return duration }
        case is String.Type:
            if let text = try node.text() as? Value { return text }
        case is Bool.Type:
            if let flag = try node.boolean() as? Value { return flag }
        case is Double.Type:
            if let number = try node.number() as? Value { return number }
        case is Float.Type:
            if let number = Float(try node.number()) as? Value { return number }
        case let integer as any (FixedWidthInteger & Decodable).Type:
            if let number = try Self.integer(integer, node) as? Value { return number }
        default:
            break
        }
        do {
            return try Value(from: child(node, key: key))
        } catch let error as ConfigErrors {
            throw error
        } catch {
            throw Self.placed(error, at: node)
        }
    }

    private static func integer<Number: FixedWidthInteger>(
        _ type: Number.Type, _ node: ConfigNode
    ) throws(ConfigError) -> Number {
        try node.integer(Number.min...Number.max)
    }
}

extension Decoder {
    /// An error at the value of a key, for types that check what they have decoded.
    func invalid(_ key: String, _ what: String) -> any Error {
        guard let decoder = self as? ConfigDecoder else {
            return DecodingError.dataCorrupted(.init(codingPath: codingPath, debugDescription: "'\(key)' \(what)"))
        }
        return (decoder.node[key] ?? decoder.node).error(what)
    }
}
