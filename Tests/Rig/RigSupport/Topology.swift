/// What a topology has besides a client, its network and the door.
package struct TopologyOptions: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// The client can move to a second network.
    package static let secondNetwork = TopologyOptions(rawValue: 1)
    /// There is a name server.
    package static let resolver = TopologyOptions(rawValue: 2)
}

/// Machines around an internet: what most scenarios need.
///
/// ```
/// client ──cable── nat ──shaped link── internet ──cable── door
///    └────cable── nat2 ──shaped link─────┘  └────cable── resolver
/// ```
///
/// Every link has IPv4 and IPv6; both NATs masquerade. The shaped links' side `a` is the NAT, so `a>b` leads to the door.
package struct Topology: Sendable {
    package static let doorAddress = "198.51.100.10"
    package static let doorAddress6 = "2001:db8:100::10"
    package static let resolverAddress = "192.0.2.53"

    package let rig: Rig
    package let client: Namespace
    package let door: Namespace
    package let internet: Namespace
    /// The network where the client starts: its interface `eth0`, 192.168.1.2, gateway 192.168.1.1.
    package let home: Network
    /// The other one: the client's interface `wlan0`, 192.168.2.2, gateway 192.168.2.1; no default route leads there yet.
    private let second: Network?
    private let resolverNamespace: Namespace?

    /// A network that the client can use.
    package struct Network: Sendable {
        package let nat: Namespace
        /// Its way to the internet.
        package let link: LinkShaper
        /// The client's interface to it.
        package let interface: String
        package let gateway: String
        package let gateway6: String
    }

    /// The way from the first network to the internet.
    package var link: LinkShaper { home.link }
    package var nat: Namespace { home.nat }
    package var away: Network {
        get throws {
            guard let second else { throw RigFailure("ask for the second network when making the topology") }
            return second
        }
    }
    package var resolver: Namespace {
        get throws {
            guard let resolverNamespace else { throw RigFailure("ask for the resolver when making the topology") }
            return resolverNamespace
        }
    }

    package init(_ rig: Rig, _ options: TopologyOptions = [], seed: UInt64? = nil) async throws {
        self.rig = rig
        client = try await rig.makeNamespace("client")
        door = try await rig.makeNamespace("door")
        internet = try await rig.makeNamespace("internet", forwards: true)
        try await rig.makeCable(
            Rig.End(door, "eth0", "\(Self.doorAddress)/24", "\(Self.doorAddress6)/64"),
            Rig.End(internet, "door0", "198.51.100.1/24", "2001:db8:100::1/64"))
        try await door.ip("route add default via 198.51.100.1", "route add default via 2001:db8:100::1")
        home = try await Self.makeNetwork(1, "eth0", rig, client, internet, seed)
        second =
            options.contains(.secondNetwork) ? try await Self.makeNetwork(2, "wlan0", rig, client, internet, seed) : nil
        if options.contains(.resolver) {
            let resolver = try await rig.makeNamespace("resolver")
            try await rig.makeCable(
                Rig.End(resolver, "eth0", "\(Self.resolverAddress)/24"), Rig.End(internet, "names0", "192.0.2.1/24"))
            try await resolver.ip("route add default via 192.0.2.1")
            resolverNamespace = resolver
            try client.useResolver(Self.resolverAddress)
        } else {
            resolverNamespace = nil
        }
        try await useNetwork(home)
    }

    private static func makeNetwork(
        _ number: Int, _ interface: String, _ rig: Rig, _ client: Namespace, _ internet: Namespace, _ seed: UInt64?
    ) async throws -> Network {
        let nat = try await rig.makeNamespace("nat\(number)", forwards: true)
        let gateway = "192.168.\(number).1"
        let gateway6 = "fd00:\(number)::1"
        try await rig.makeCable(
            Rig.End(client, interface, "192.168.\(number).2/24", "fd00:\(number)::2/64"),
            Rig.End(nat, "lan0", "\(gateway)/24", "\(gateway6)/64"))
        let link = try await rig.makeShapedLink(
            Rig.End(nat, "wan0", "203.0.113.\(4 * number + 2)/30", "2001:db8:\(number)::2/64"),
            Rig.End(internet, "net\(number)", "203.0.113.\(4 * number + 1)/30", "2001:db8:\(number)::1/64"), seed: seed)
        try await nat.ip(
            "route add default via 203.0.113.\(4 * number + 1)", "route add default via 2001:db8:\(number)::1")
        try await nat.masquerade(on: "wan0")
        return Network(nat: nat, link: link, interface: interface, gateway: gateway, gateway6: gateway6)
    }

    /// Makes the client's default routes lead to `network`.
    package func useNetwork(_ network: Network) async throws {
        try await client.ip(
            "route replace default via \(network.gateway) dev \(network.interface)",
            "route replace default via \(network.gateway6) dev \(network.interface)")
    }

    /// Takes the client's default routes away.
    package func loseRoutes() async throws {
        try await client.ip("route delete default", "route delete ::/0")
    }
}

/// Runs a test on a rig with a topology.
package func withTopology<Result>(
    _ options: TopologyOptions = [], seed: UInt64? = nil, _ body: (Topology) async throws -> Result
) async throws -> Result {
    try await withRig { rig in try await body(try await Topology(rig, options, seed: seed)) }
}
