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
        let keyFile = section.optional("keys").map(deviceKey)
        let transportNodes = entries(section.optional("transports"))
        let carrierNodes = entries(section.optional("carriers"))
        let boxNode = section.optional("box")
        parts.take(
            transports: transportNodes, carriers: carrierNodes, deviceKey: keyFile, boxDoor: boxNode?["door"])
        let listenerNodes = entries(section.optional("listeners"))
        let forwardNodes = elements(section.optional("forwards"))
        section.finish()

        parts.makeAll()
        checkHomes(carrierNodes)
        var places = PortUse()
        let listeners = listenerNodes.compactMap { listener($0, &places) }
        let forwards = forwardNodes.compactMap { forward($0, &places) }
        let box = boxNode.flatMap(box)
        if listenerNodes.isEmpty, forwardNodes.isEmpty, boxNode == nil, errors.errors.isEmpty {
            errors.add(configuration.root.error("there is nothing to run; 'listeners', 'forwards' or 'box' is needed"))
        }
        guard errors.errors.isEmpty else { throw ConfigErrors(errors.errors) }
        return HostGraph(
            logLevel: logLevel, grace: grace ?? .seconds(30), listeners: listeners, forwards: forwards,
            carriers: parts.carriers, box: box)
    }

    private static func level(_ node: ConfigNode) throws(ConfigError) -> LogLevel {
        try node.word(of: ["debug": .debug, "info": .info, "warning": .warning, "error": .error])
    }

    /// The key is read here, so that a bad one is found before anything needs it.
    private func deviceKey(_ node: ConfigNode) -> GraphParts.DeviceKey {
        guard var section = ConfigSection(node, errors: errors) else { return .failed }
        let file = section.required("device", "name the file of this machine's key").flatMap { node in
            errors.gather { () throws(ConfigError) in
                let path = configuration.path(try node.fileName("a file name"))
                do throws(TransportError) {
                    _ = try KeyFile.read(path)
                } catch {
                    throw node.error(error.message)
                }
                return path
            }
        }
        section.finish()
        return file.map { .file($0) } ?? .failed
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
        let to = section.required(
            "to", "write tcp://host:port, as the other end reaches it, or a box's service by name"
        )
        .flatMap { node in errors.gather { () throws(ConfigError) in try Self.target(node) } }
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
            guard parts.carriers[name] != nil else {
                guard !parts.hasCarrier(name) else { return nil }
                throw node.error(parts.noCarrier(name))
            }
            if let owner = parts.owner(of: name) {
                throw node.error("the carrier '\(name)' is closed when '\(owner)' gives it up; name another carrier")
            }
            if let problem = parts.problem(using: name, for: .peer) { throw node.error(problem) }
            return name
        } ?? nil
    }

    private static func target(_ node: ConfigNode) throws(ConfigError) -> ForwardTarget {
        let text = try node.text("tcp://host:port, or the name of a service")
        return ForwardTarget.isName(text) ? .service(text) : .address(try endpoint(node, allowsAnyPort: false))
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
