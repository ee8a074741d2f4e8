/// Maps names to factories of transports, carriers, services and policies. A value: the program fills one in a visible
/// place and passes it on; nothing registers itself.
///
/// ```swift
/// var registry = Registry()
/// try registry.register(transport: "framed-tcp") { options, context in
///     FramedTCPTransport(options: try options.decode(FramedTCPOptions.self), loop: try context.eventLoop())
/// }
/// ```
public struct Registry: Sendable {
    /// Makes a thing of one kind from its options; opens nothing.
    public typealias Factory<Product> = @Sendable (any OptionsSource, BuildContext) throws -> Product

    private var transports: [String: Factory<any Transport>] = [:]
    private var carriers: [String: Factory<any Carrier>] = [:]
    private var services: [String: Factory<any Service>] = [:]
    private var racePolicies: [String: Factory<any RacePolicy>] = [:]
    private var demotionPolicies: [String: Factory<any DemotionPolicy>] = [:]

    /// Makes an empty registry.
    public init() {}

    /// Adds a transport.
    ///
    /// - Throws: ``RegistryError`` if the name is taken, as do the other four.
    public mutating func register(
        transport name: String, _ factory: @escaping Factory<any Transport>
    ) throws(RegistryError) {
        try Self.add(factory, name: name, kind: "transport", to: &transports)
    }

    /// Adds a carrier.
    public mutating func register(
        carrier name: String, _ factory: @escaping Factory<any Carrier>
    ) throws(RegistryError) {
        try Self.add(factory, name: name, kind: "carrier", to: &carriers)
    }

    /// Adds a service.
    public mutating func register(
        service name: String, _ factory: @escaping Factory<any Service>
    ) throws(RegistryError) {
        try Self.add(factory, name: name, kind: "service", to: &services)
    }

    /// Adds a race policy.
    public mutating func register(
        racePolicy name: String, _ factory: @escaping Factory<any RacePolicy>
    ) throws(RegistryError) {
        try Self.add(factory, name: name, kind: "race policy", to: &racePolicies)
    }

    /// Adds a demotion policy.
    public mutating func register(
        demotionPolicy name: String, _ factory: @escaping Factory<any DemotionPolicy>
    ) throws(RegistryError) {
        try Self.add(factory, name: name, kind: "demotion policy", to: &demotionPolicies)
    }

    /// Makes a transport.
    ///
    /// - Throws: ``RegistryError`` for a name that nobody registered, else what the factory throws, as do the other four.
    public func makeTransport(
        _ name: String, options: any OptionsSource, context: BuildContext
    ) throws -> any Transport {
        try Self.find(name, kind: "transport", in: transports)(options, context)
    }

    /// Makes a carrier.
    public func makeCarrier(_ name: String, options: any OptionsSource, context: BuildContext) throws -> any Carrier {
        try Self.find(name, kind: "carrier", in: carriers)(options, context)
    }

    /// Makes a service.
    public func makeService(_ name: String, options: any OptionsSource, context: BuildContext) throws -> any Service {
        try Self.find(name, kind: "service", in: services)(options, context)
    }

    /// Makes a race policy.
    public func makeRacePolicy(
        _ name: String, options: any OptionsSource, context: BuildContext
    ) throws -> any RacePolicy {
        try Self.find(name, kind: "race policy", in: racePolicies)(options, context)
    }

    /// Makes a demotion policy.
    public func makeDemotionPolicy(
        _ name: String, options: any OptionsSource, context: BuildContext
    ) throws -> any DemotionPolicy {
        try Self.find(name, kind: "demotion policy", in: demotionPolicies)(options, context)
    }

    /// The names of each kind, sorted.
    public var names: Names {
        Names(
            transports: transports.keys.sorted(), carriers: carriers.keys.sorted(), services: services.keys.sorted(),
            racePolicies: racePolicies.keys.sorted(), demotionPolicies: demotionPolicies.keys.sorted())
    }

    /// The names of each kind.
    public struct Names: Sendable, Hashable {
        /// The transports.
        public var transports: [String]
        /// The carriers.
        public var carriers: [String]
        /// The services.
        public var services: [String]
        /// The race policies.
        public var racePolicies: [String]
        /// The demotion policies.
        public var demotionPolicies: [String]
    }

    private static func add<Product>(
        _ factory: @escaping Factory<Product>, name: String, kind: String,
        to table: inout [String: Factory<Product>]
    ) throws(RegistryError) {
        guard table[name] == nil else { throw RegistryError("the \(kind) '\(name)' is registered already") }
        table[name] = factory
    }

    private static func find<Product>(
        _ name: String, kind: String, in table: [String: Factory<Product>]
    ) throws(RegistryError) -> Factory<Product> {
        guard let factory = table[name] else {
            let known = table.keys.sorted().joined(separator: ", ")
            throw RegistryError("there is no \(kind) '\(name)'; there are \(known.isEmpty ? "none" : known)")
        }
        return factory
    }
}

/// A name that is taken, or that nobody has.
public struct RegistryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong, in one sentence.
    public let description: String

    /// Makes an error.
    public init(_ description: String) {
        self.description = description
    }
}
