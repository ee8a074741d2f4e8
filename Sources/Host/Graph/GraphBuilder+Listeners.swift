internal import NoiseCarrier
internal import TransportKit
internal import TransportTLS

extension GraphBuilder {
    func listener(_ entry: ConfigNode.Entry, _ places: inout PortUse) -> ListenerPlan? {
        let node = entry.value
        guard var section = ConfigSection(node, errors: errors) else { return nil }
        let urlNode = section.required("url", "write wss://address:port")
        let endpoint = urlNode.flatMap { node in
            errors.gather { () throws(ConfigError) in try self.endpoint(node) }
        }
        let transportsNode = section.optional("transports")
        let transports = self.transports(transportsNode, endpoint: endpoint, at: node)
        let tls = self.tls(section.optional("tls"), endpoint: endpoint, at: node)
        let limits = section.optional("limits").flatMap { decode(LimitsOptions.self, $0) }
        let keepalive = section.optional("keepalive").flatMap { decode(KeepaliveOptions.self, $0) }
        let routes = section.required("routes", "map a path to a service").map {
            self.routes($0, transports ?? [], limits)
        }
        section.finish()
        if let endpoint, let urlNode, let transports {
            // A transport of somebody else's may use either, so it takes both.
            let kinds: [PortUse.Kind] = transports.flatMap { transport -> [PortUse.Kind] in
                transport.name == .quic ? [.udp] : transport.name == .webSocket ? [.tcp] : [.udp, .tcp]
            }
            errors.gather { () throws(ConfigError) in
                for kind in Set(kinds).sorted() {
                    try places.take(kind, endpoint.host, endpoint.port, at: urlNode)
                }
            }
        }
        guard let endpoint, let transports, let routes, let tls else { return nil }
        if tls.earlyData, !transports.contains(where: { $0.name == .quic }) {
            errors.add(node.error("'tls.earlyData' \(EarlyDataOption.needsQUIC)"))
        }
        var plan = ListenerPlan(
            name: entry.key, endpoint: endpoint, transports: transports, certificate: tls.certificate,
            clientPins: tls.clientPins, tickets: tls.tickets, earlyData: tls.earlyData, limits: Limits(),
            keepalive: Keepalive(), routes: routes)
        limits?.apply(to: &plan.limits)
        keepalive?.apply(to: &plan.keepalive)
        return plan
    }

    private func endpoint(_ node: ConfigNode) throws(ConfigError) -> Endpoint {
        let text = try node.text("wss://address:port")
        let url: ServiceURL
        do {
            url = try ServiceURL(text)
        } catch {
            throw node.error(error.description)
        }
        guard url.target == .root else {
            throw node.error("the URL of a listener has no path; paths stand under 'routes'")
        }
        guard url.endpoint.port > 0 || allowsAnyPort else {
            throw node.error("the URL has port 0; 1 to 65535 are allowed")
        }
        return url.endpoint
    }

    private func transports(
        _ node: ConfigNode?, endpoint: Endpoint?, at listener: ConfigNode
    ) -> [any Transport]? {
        guard let node else {
            let names = endpoint?.scheme == .ws ? ["websocket"] : ["quic", "websocket"]
            return errors.gather { () throws(ConfigError) in
                try names.map { (name) throws(ConfigError) in try parts.transport(name, at: listener) }
            }
        }
        return errors.gather { () throws(ConfigError) in
            let elements = try node.elements(of: "transports")
            guard !elements.isEmpty else { throw node.error("names no transport; one at least is needed") }
            var transports: [any Transport] = []
            for element in elements {
                let name = try element.text("the name of a transport")
                let transport = try parts.transport(name, at: element)
                guard !transports.contains(where: { $0.name == transport.name }) else {
                    throw element.error("'\(name)' stands here a second time; once is enough")
                }
                guard transport.name != .quic || endpoint?.scheme != .ws else {
                    throw element.error("QUIC has no form without TLS; write wss:// or leave it out")
                }
                transports.append(transport)
            }
            return transports
        }
    }

    private func decode<Options: Decodable>(_ type: Options.Type, _ node: ConfigNode) -> Options? {
        do {
            return try ConfigOptions(node, hostKeys: []).decode(type)
        } catch {
            errors.add(error, at: node)
            return nil
        }
    }

    // MARK: - Routes

    private func routes(
        _ node: ConfigNode, _ transports: [any Transport], _ limits: LimitsOptions?
    ) -> [String: any Service] {
        var routes: [String: any Service] = [:]
        let entries = errors.gather { () throws(ConfigError) in try node.entries("a mapping from paths") } ?? []
        if entries.isEmpty, case .mapping = node.value {
            errors.add(node.error("holds no route; map a path such as /echo to { service: echo }"))
        }
        for entry in entries {
            let target = Target(entry.key)
            if target == nil || target?.query != nil {
                errors.add(
                    ConfigError(
                        "is no path; it must begin with / and hold no space, ? or #", at: entry.keyPlace,
                        path: entry.value.path))
            }
            guard let service = service(entry.value, limits) else { continue }
            for transport in transports where !service.requires.isSubset(of: transport.capabilities) {
                errors.add(
                    entry.value.error(
                        "needs \(service.requires), which the transport '\(transport.name)' of the listener has not: it "
                            + "has \(transport.capabilities)"))
            }
            routes[entry.key] = service
        }
        return routes
    }

    private func service(_ node: ConfigNode, _ limits: LimitsOptions?) -> (any Service)? {
        guard var section = ConfigSection(node, "a mapping with 'service'", errors: errors),
            let kind = section.required(
                "service", "name one of \(Words.list(registry.names.services, joint: "or"))"),
            let name = errors.gather({ () throws(ConfigError) in try kind.text("the name of a service") })
        else { return nil }
        guard registry.names.services.contains(name) else {
            errors.add(kind.error(GraphParts.unknown(name, kind: "service", among: registry.names.services)))
            return nil
        }
        let options = ConfigOptions(node, hostKeys: ["service", "noise"])
        let context = parts.context(for: node)
        do {
            let service = try registry.makeService(name, options: options, context: context)
            guard let noise = section.optional("noise") else { return service }
            return try sealed(service, noise, limits, context)
        } catch {
            errors.add(error, at: node)
            return nil
        }
    }

    private func sealed(
        _ service: any Service, _ node: ConfigNode, _ limits: LimitsOptions?, _ context: BuildContext
    ) throws -> any Service {
        let source = ConfigOptions(node, hostKeys: [])
        let options = try source.decode(SealingOptions.self)
        guard !options.peers.elements.isEmpty else {
            throw source.invalid("peers", "names nobody; the public key of a peer is needed")
        }
        let key: StaticPrivateKey
        if let file = options.key {
            if let problem = FileCheck.problem(naming: file) { throw source.invalid("key", problem) }
            do throws(TransportError) {
                key = try KeyFile.read(configuration.path(file))
            } catch {
                throw source.invalid("key", error.message)
            }
        } else {
            key = try context.deviceKey()
        }
        var bounds = Limits()
        limits?.apply(to: &bounds)
        func seal(_ service: some Service) -> any Service {
            SealedService(
                service, key: key, peers: options.peers.elements.map(\.key), prologue: options.prologue,
                limits: bounds, context: context)
        }
        return seal(service)
    }

    // MARK: - TLS

    private struct TLSPlan {
        var certificate: ListenerPlan.Certificate?
        var clientPins: [PublicKeyHash]?
        var tickets = true
        var earlyData = false
    }

    private func tls(_ node: ConfigNode?, endpoint: Endpoint?, at listener: ConfigNode) -> TLSPlan? {
        guard let node else {
            guard endpoint?.scheme == .wss else { return TLSPlan() }
            errors.add(
                listener.error(
                    "'tls' is missing; wss:// needs { certificate: file, key: file } or { selfSigned: [names], "
                        + "directory: folder }"))
            return nil
        }
        if endpoint?.scheme == .ws {
            errors.add(node.error("is of no use with ws://; write wss:// or leave it out"))
            return nil
        }
        guard var section = ConfigSection(node, errors: errors) else { return nil }
        let certificate = section.optional("certificate")
        let key = section.optional("key")
        let selfSigned = section.optional("selfSigned")
        let directory = section.optional("directory")
        let clientPins = section.optional("clientPins").flatMap { decode([Pin].self, $0) }
        let tickets = section.value("tickets", default: true) { node throws(ConfigError) in try node.boolean() }
        let earlyData = section.value("earlyData", default: false) { node throws(ConfigError) in
            let wanted = try node.boolean()
            guard !wanted || tickets != false else { throw node.error(EarlyDataOption.needsTickets) }
            return wanted
        }
        section.finish()
        guard let tickets, let earlyData else { return nil }
        var plan = TLSPlan(clientPins: clientPins?.map(\.hash), tickets: tickets, earlyData: earlyData)
        plan.certificate = errors.gather { () throws(ConfigError) in
            if let selfSigned {
                if let other = certificate ?? key {
                    throw other.error("does not go with 'selfSigned'; keep one of the two")
                }
                return try self.selfSigned(selfSigned, directory: directory, at: node)
            }
            if let directory { throw directory.error("goes with 'selfSigned' alone; leave it out") }
            guard let certificate, let key else {
                throw node.error(
                    "needs 'certificate' and 'key', each naming a PEM file, or 'selfSigned' and 'directory'")
            }
            return try files(certificate: certificate, key: key)
        }
        return plan.certificate == nil ? nil : plan
    }

    private func selfSigned(
        _ node: ConfigNode, directory: ConfigNode?, at tls: ConfigNode
    ) throws(ConfigError) -> ListenerPlan.Certificate {
        var elements = [node]
        if case .list(let listed) = node.value { elements = listed }
        guard !elements.isEmpty else { throw node.error("names nobody; a name or an address is needed") }
        var names: [String] = []
        for element in elements {
            let name = try element.text("a name or an address that clients dial")
            guard Host(name) != nil else { throw element.error("is neither a name nor an address") }
            names.append(name)
        }
        guard let directory else {
            throw tls.error("'directory' is missing; it says where the certificate is kept")
        }
        return .selfSigned(names: names, directory: configuration.path(try directory.fileName("a folder")))
    }

    /// The files are read here, so that a bad pair is found before anything binds.
    private func files(certificate: ConfigNode, key: ConfigNode) throws(ConfigError) -> ListenerPlan.Certificate {
        let files = CertificateFiles(
            certificate: try parts.readableFile(certificate), key: try parts.readableFile(key))
        do {
            _ = try TLSServerCredentials(ServerSecurity(identity: files))
        } catch {
            throw certificate.error(error.message)
        }
        return .files(files)
    }
}
