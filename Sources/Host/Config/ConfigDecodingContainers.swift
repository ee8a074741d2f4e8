/// The place of an element in a list, as a key.
private struct IndexKey: CodingKey {
    let index: Int
    var stringValue: String { "\(index)" }
    var intValue: Int? { index }

    init(_ index: Int) { self.index = index }
    init?(stringValue: String) { nil }
    init?(intValue: Int) { index = intValue }
}

/// The keys of a mapping.
struct ConfigKeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: ConfigDecoder
    let entries: [ConfigNode.Entry]
    var codingPath: [any CodingKey] { decoder.codingPath }

    var allKeys: [Key] {
        // Whoever asks for all keys, as a dictionary does, knows what to do with each of them.
        for entry in entries { decoder.asks(for: entry.key) }
        return entries.compactMap { Key(stringValue: $0.key) }
    }

    func contains(_ key: Key) -> Bool {
        decoder.asks(for: key.stringValue)
        return entries.contains { $0.key == key.stringValue }
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        // A key without a value is an error of the type that is wanted, not an absence: `transports:` is a slip.
        decoder.asks(for: key.stringValue)
        return !entries.contains { $0.key == key.stringValue }
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try decoder.decode(type, from: value(key), key: key)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try decoder.child(value(key), key: key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder.child(value(key), key: key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { decoder }

    func superDecoder(forKey key: Key) throws -> any Decoder { decoder.child(try value(key), key: key) }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try plain(key) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try plain(key) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try plain(key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try plain(key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try plain(key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try plain(key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try plain(key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try plain(key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try plain(key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try plain(key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try plain(key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try plain(key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try plain(key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try plain(key) }

    private func plain<Value: Decodable>(_ key: Key) throws -> Value {
        try decoder.decode(Value.self, from: value(key), key: key)
    }

    private func value(_ key: Key) throws(ConfigError) -> ConfigNode {
        decoder.asks(for: key.stringValue)
        guard let entry = entries.first(where: { $0.key == key.stringValue }) else {
            throw decoder.node.error("'\(key.stringValue)' is missing")
        }
        return entry.value
    }
}

/// The elements of a list.
struct ConfigUnkeyedContainer: UnkeyedDecodingContainer {
    let decoder: ConfigDecoder
    let elements: [ConfigNode]
    private(set) var currentIndex = 0
    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }

    init(decoder: ConfigDecoder, elements: [ConfigNode]) {
        self.decoder = decoder
        self.elements = elements
    }

    mutating func decodeNil() throws -> Bool { false }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let key = IndexKey(currentIndex)
        return try decoder.decode(type, from: next(), key: key)
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        let key = IndexKey(currentIndex)
        return try decoder.child(next(), key: key).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let key = IndexKey(currentIndex)
        return try decoder.child(next(), key: key).unkeyedContainer()
    }

    mutating func superDecoder() throws -> any Decoder {
        let key = IndexKey(currentIndex)
        return decoder.child(try next(), key: key)
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try plain() }
    mutating func decode(_ type: String.Type) throws -> String { try plain() }
    mutating func decode(_ type: Double.Type) throws -> Double { try plain() }
    mutating func decode(_ type: Float.Type) throws -> Float { try plain() }
    mutating func decode(_ type: Int.Type) throws -> Int { try plain() }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try plain() }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try plain() }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try plain() }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try plain() }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try plain() }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try plain() }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try plain() }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try plain() }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try plain() }

    private mutating func plain<Value: Decodable>() throws -> Value {
        let key = IndexKey(currentIndex)
        return try decoder.decode(Value.self, from: next(), key: key)
    }

    private mutating func next() throws(ConfigError) -> ConfigNode {
        guard currentIndex < elements.count else { throw decoder.node.error("has too few elements") }
        defer { currentIndex += 1 }
        return elements[currentIndex]
    }
}

/// A value by itself.
struct ConfigSingleContainer: SingleValueDecodingContainer {
    let decoder: ConfigDecoder
    var codingPath: [any CodingKey] { decoder.codingPath }

    func decodeNil() -> Bool {
        if case .null = decoder.node.value { true } else { false }
    }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try decoder.decode(type, from: decoder.node, key: IndexKey(0))
    }

    func decode(_ type: Bool.Type) throws -> Bool { try plain() }
    func decode(_ type: String.Type) throws -> String { try plain() }
    func decode(_ type: Double.Type) throws -> Double { try plain() }
    func decode(_ type: Float.Type) throws -> Float { try plain() }
    func decode(_ type: Int.Type) throws -> Int { try plain() }
    func decode(_ type: Int8.Type) throws -> Int8 { try plain() }
    func decode(_ type: Int16.Type) throws -> Int16 { try plain() }
    func decode(_ type: Int32.Type) throws -> Int32 { try plain() }
    func decode(_ type: Int64.Type) throws -> Int64 { try plain() }
    func decode(_ type: UInt.Type) throws -> UInt { try plain() }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try plain() }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try plain() }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try plain() }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try plain() }

    private func plain<Value: Decodable>() throws -> Value {
        try decoder.decode(Value.self, from: decoder.node, key: IndexKey(0))
    }
}
