internal import TransportKit

/// Makes a ``HostGraph``: checks every section, resolves every name, and gathers the errors. Opens nothing.
struct GraphBuilder {
    let configuration: HostConfiguration
    let registry: Registry
    let allowsAnyPort: Bool
    let errors = ConfigErrorList()
    let parts: GraphParts

    init(_ configuration: HostConfiguration, registry: Registry, context: BuildContext, allowsAnyPort: Bool) {
        self.configuration = configuration
        self.registry = registry
        self.allowsAnyPort = allowsAnyPort
        parts = GraphParts(configuration: configuration, registry: registry, context: context, errors: errors)
    }

    func build() throws(ConfigErrors) -> HostGraph {
        defer { parts.forget() }
        guard var section = ConfigSection(configuration.root, errors: errors) else {
            throw ConfigErrors(errors.errors)
        }
        var logLevel = LogLevel.info
        if let node = section.optional("log"), var log = ConfigSection(node, errors: errors) {
            logLevel = log.value("level", default: logLevel, Self.level) ?? logLevel
            log.finish()
        }
        let grace = section.value("grace", default: .seconds(30)) { (node) throws(ConfigError) in try node.duration() }
        // The host has looked at it before; here it is checked.
        _ = section.value("state", default: nil, configuration.state)
        _ = section.value("control", default: nil, configuration.control)
        _ = section.value("trace", default: nil, configuration.trace)
        let transportNodes = entries(section.optional("transports"))
        let carrierNodes = entries(section.optional("carriers"))
        parts.take(transports: transportNodes, carriers: carrierNodes)
        let listenerNodes = entries(section.optional("listeners"))
        let forwardNodes = elements(section.optional("forwards"))
        section.finish()

        parts.makeAll()
        var places = PortUse()
        let listeners = listenerNodes.compactMap { listener($0, &places) }
        let forwards = forwardNodes.compactMap { forward($0, &places) }
        if listenerNodes.isEmpty, forwardNodes.isEmpty, errors.errors.isEmpty {
            errors.add(configuration.root.error("there is nothing to run; 'listeners' or 'forwards' is needed"))
        }
        guard errors.errors.isEmpty else { throw ConfigErrors(errors.errors) }
        return HostGraph(
            logLevel: logLevel, grace: grace ?? .seconds(30), listeners: listeners, forwards: forwards,
            carriers: parts.carriers)
    }

    private static func level(_ node: ConfigNode) throws(ConfigError) -> LogLevel {
        try node.word(of: ["debug": .debug, "info": .info, "warning": .warning, "error": .error])
    }

    private func entries(_ node: ConfigNode?) -> [ConfigNode.Entry] {
        guard let node else { return [] }
        return errors.gather { () throws(ConfigError) in try node.entries("a mapping from names") } ?? []
    }

    private func elements(_ node: ConfigNode?) -> [ConfigNode] {
        guard let node else { return [] }
        return errors.gather { () throws(ConfigError) in try node.elements(of: "forwards") } ?? []
    }

    // MARK: - Forwards

    private func forward(_ node: ConfigNode, _ places: inout PortUse) -> ForwardPlan? {
        guard var section = ConfigSection(node, errors: errors) else { return nil }
        let listenNode = section.required("listen", "write tcp://address:port")
        let listen = listenNode.flatMap { node in
            errors.gather { () throws(ConfigError) in
                try Self.endpoint(node, allowsAnyPort: allowsAnyPort)
            }
        }
        let carrier = section.required("carrier", "name one of 'carriers'").flatMap(carrierName)
        let to = section.required("to", "write tcp://host:port, as the other end reaches it").flatMap { node in
            errors.gather { () throws(ConfigError) in try Self.endpoint(node, allowsAnyPort: false) }
        }
        let isOptional = section.value("optional", default: false) { (node) throws(ConfigError) in
            try node.boolean()
        }
        let patience = section.value("patience", default: .seconds(10)) { (node) throws(ConfigError) in
            try node.duration()
        }
        section.finish()
        if let listen, let listenNode {
            errors.gather { () throws(ConfigError) in
                try places.take(.tcp, listen.host, listen.port, at: listenNode)
            }
        }
        guard let listen, let carrier, let to, let isOptional, let patience else { return nil }
        return ForwardPlan(listen: listen, carrier: carrier, to: to, isOptional: isOptional, patience: patience)
    }

    private func carrierName(_ node: ConfigNode) -> String? {
        errors.gather { () throws(ConfigError) -> String? in
            let name = try node.text("the name of a carrier")
            guard let carrier = parts.carriers[name] else {
                guard !parts.hasCarrier(name) else { return nil }
                throw node.error(parts.noCarrier(name))
            }
            if let owner = parts.owner(of: name) {
                throw node.error("the carrier '\(name)' is closed when '\(owner)' gives it up; name another carrier")
            }
            guard carrier.capabilities.contains(.streams) else {
                throw node.error(
                    "the carrier '\(name)' has no streams, which a forward needs; it has \(carrier.capabilities)")
            }
            return name
        } ?? nil
    }

    private static func endpoint(_ node: ConfigNode, allowsAnyPort: Bool) throws(ConfigError) -> TCPEndpoint {
        let text = try node.text("tcp://host:port")
        do {
            return try TCPEndpoint(text, allowsAnyPort: allowsAnyPort)
        } catch {
            throw node.error(error.description)
        }
    }
}
