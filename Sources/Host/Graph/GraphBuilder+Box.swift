internal import DirectCarrier
internal import NoiseCarrier
internal import TransportKit
internal import TunnelCarrier

extension GraphBuilder {
    func box(_ node: ConfigNode) -> BoxPlan? {
        guard var section = ConfigSection(node, errors: errors) else { return nil }
        let door = section.required("door", "name the carrier that leads to the door").flatMap(boxDoor)
        let doorKeys = section.required("doorKeys", "list the public keys of the door, one or two").flatMap(doorKeys)
        let services = section.required("services", "map names to addresses, such as web: \"tcp://127.0.0.1:80\"")
            .flatMap(boxServices)
        let urlNode = section.optional("url")
        section.finish()
        let key: StaticPrivateKey
        do {
            key = try parts.context(for: node).deviceKey()
        } catch {
            errors.add(error, at: node)
            return nil
        }
        guard let door, let doorKeys, let services, let url = clientURL(urlNode, door: door, at: node) else {
            return nil
        }
        return BoxPlan(
            carrier: door.carrier, key: key, doorKeys: doorKeys, services: services, url: url, pins: pins(of: door.name)
        )
    }

    private func boxDoor(_ node: ConfigNode) -> (name: String, carrier: any Carrier)? {
        errors.gather { () throws(ConfigError) -> (name: String, carrier: any Carrier)? in
            let name = try node.text("the name of a carrier")
            guard let carrier = parts.carriers[name] else {
                guard !parts.hasCarrier(name) else { return nil }
                throw node.error(parts.noCarrier(name))
            }
            if let problem = parts.problem(using: name, for: .box) { throw node.error(problem) }
            return (name, carrier)
        } ?? nil
    }

    private func doorKeys(_ node: ConfigNode) -> [StaticPublicKey]? {
        do {
            let keys = try ConfigOptions(node, hostKeys: []).decode(OneOrMore<PeerKey>.self).elements.map(\.key)
            if let problem = DoorKeyRule.problem(keys) { throw node.error(problem) }
            return keys
        } catch {
            errors.add(error, at: node)
            return nil
        }
    }

    private func boxServices(_ node: ConfigNode) -> [String: TCPEndpoint]? {
        guard let entries = errors.gather({ () throws(ConfigError) in try node.entries("a mapping from names") }) else {
            return nil
        }
        if entries.isEmpty { errors.add(node.error("offers nothing; map a name to an address")) }
        var services: [String: TCPEndpoint] = [:]
        for entry in entries {
            if !ForwardTarget.isName(entry.key) {
                errors.add(
                    ConfigError(
                        "is no name of a service; 1 to 32 of a-z, 0-9, . and - are allowed", at: entry.keyPlace,
                        path: entry.value.path))
            }
            errors.gather { () throws(ConfigError) in
                let text = try entry.value.text("tcp://host:port")
                do throws(ServiceURL.InvalidURL) {
                    services[entry.key] = try TCPEndpoint(text)
                } catch {
                    throw entry.value.error(error.description)
                }
            }
        }
        return services
    }

    /// Where clients find the door: where the box does, unless the file says otherwise.
    private func clientURL(
        _ node: ConfigNode?, door: (name: String, carrier: any Carrier), at box: ConfigNode
    ) -> ServiceURL? {
        errors.gather { () throws(ConfigError) in
            if let node {
                do throws(ServiceURL.InvalidURL) {
                    return try ServiceURL(try Self.text(node))
                } catch {
                    throw node.error(error.description)
                }
            }
            guard let direct = door.carrier as? DirectCarrier,
                direct.destination.target.wireForm == LinkRole.box.target?.wireForm
            else {
                throw box.error(
                    "'url' is missing; '\(door.name)' does not say where clients find the door, so write it: "
                        + "wss://host:port/path")
            }
            return ServiceURL(direct.destination.endpoint)
        }
    }

    private static func text(_ node: ConfigNode) throws(ServiceURL.InvalidURL) -> String {
        guard case .scalar(let text, _) = node.value else { throw ServiceURL.InvalidURL("must be text") }
        return text
    }

    /// A home certifies itself, so a tunnel that leads to another one than that of the box above it is found here (R95).
    func checkHomes(_ carriers: [ConfigNode.Entry]) {
        for entry in carriers where Self.word(entry.value, "kind") == "noise" {
            guard let over = Self.word(entry.value, "over"), let peerNode = entry.value["peer"],
                let peer = Self.word(entry.value, "peer").flatMap({ StaticPublicKey($0) }),
                let tunnel = carriers.first(where: { $0.key == over })?.value, Self.word(tunnel, "kind") == "tunnel",
                let home = Self.word(tunnel, "home").flatMap({ HomeID($0) }), home != HomeID(of: peer)
            else { continue }
            errors.add(
                peerNode.error(
                    "has the home \(HomeID(of: peer)), and '\(over)' leads to \(home); one of the two is wrong"))
        }
    }

    private static func word(_ node: ConfigNode, _ key: String) -> String? {
        guard case .scalar(let text, _)? = node[key]?.value else { return nil }
        return text
    }

    /// What the box finds the door by, a new client should too.
    private func pins(of carrier: String) -> [PublicKeyHash] {
        guard let node = parts.node(ofCarrier: carrier)?["tls"]?["pin"],
            let pins = try? ConfigOptions(node, hostKeys: []).decode(OneOrMore<Pin>.self)
        else { return [] }
        return Array(pins.elements.map(\.hash).prefix(4))
    }
}
