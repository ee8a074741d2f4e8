public import TransportKit

/// The network that the machine is on, as far as its routes and addresses tell.
public struct NetworkState: Sendable, Hashable {
    /// The way to everywhere else, of one family.
    public struct DefaultRoute: Sendable, Hashable {
        /// What the kernel says of a default route.
        package struct Key: Sendable, Hashable {
            package var isIPv6: Bool
            package var interface: UInt32
            package var gateway: SocketAddress.Address?
            package var metric: UInt32

            package init(isIPv6: Bool, interface: UInt32, gateway: SocketAddress.Address?, metric: UInt32) {
                self.isIPv6 = isIPv6
                self.interface = interface
                self.gateway = gateway
                self.metric = metric
            }
        }

        /// The name of the interface, for example `eth0`.
        public let interface: String
        /// The router; nil on a link that needs none.
        public let gateway: SocketAddress.Address?
        /// The router's address on the link, such as `02:00:5e:10:00:01`; nil while the kernel does not know it.
        public let gatewayLink: String?
        /// Whether it is a route of IPv6.
        public let isIPv6: Bool
        /// The kernel prefers the smallest.
        public let metric: UInt32
    }

    /// An address of this machine, outside the loopback interface.
    public struct LocalAddress: Sendable, Hashable {
        /// The name of the interface.
        public let interface: String
        /// The address.
        public let address: SocketAddress.Address
        /// How many of its bits name the network.
        public let prefixLength: UInt8
    }

    /// The default routes, the preferred ones first.
    public let defaultRoutes: [DefaultRoute]
    /// The machine's addresses, in a fixed order.
    public let addresses: [LocalAddress]

    /// Whether there is a way out.
    public var isOnline: Bool { !defaultRoutes.isEmpty }

    /// What tells a network from others (R57). It tells where the machine has been: only a keyed hash of it may be
    /// stored (R58).
    package struct Name: Sendable, Hashable {
        /// The interface and the router's address. Many networks have the same.
        package let vague: String
        /// The same with the router's address on the link, once that is known.
        package let full: String?

        package init(vague: String, full: String?) {
            self.vague = vague
            self.full = full
        }
    }

    /// A name for the network: the router that packets leave by, and on what interface. Nil where there is none.
    package var name: Name? {
        // A route without a router, such as a modem's, says nothing about which network it is. One router is enough:
        // that of IPv6 comes and goes, and most often it is the same box.
        guard let route = preferredRoute(isIPv6: false) ?? preferredRoute(isIPv6: true), let gateway = route.gateway
        else { return nil }
        let vague = "\(route.interface)/\(Self.text(gateway))"
        return Name(vague: vague, full: route.gatewayLink.map { "\(vague)/\($0)" })
    }

    /// The route of a family that the kernel takes.
    package func preferredRoute(isIPv6: Bool) -> DefaultRoute? {
        defaultRoutes.first { $0.isIPv6 == isIPv6 }
    }

    /// Makes the state of a machine without a network.
    public init() {
        defaultRoutes = []
        addresses = []
    }

    /// Makes a state from what the kernel listed.
    ///
    /// - Parameter interfaceName: the name for a number, or nil if the interface is gone.
    package init(_ messages: [RouteMessage], interfaceName: (UInt32) -> String?) {
        var routes: Set<DefaultRoute> = []
        var addresses: Set<LocalAddress> = []
        var links: [Neighbour: String] = [:]
        for case .neighbour(let interface, let address, let link?) in messages {
            links[Neighbour(interface: interface, address: address)] = Self.text(link)
        }
        for message in messages {
            switch message {
            case .address(let interface, let address, let prefixLength):
                guard let name = interfaceName(interface), name != "lo" else { continue }
                addresses.insert(LocalAddress(interface: name, address: address, prefixLength: prefixLength))
            case .defaultRoute(let key):
                guard let name = interfaceName(key.interface), name != "lo" else { continue }
                let link = key.gateway.flatMap { links[Neighbour(interface: key.interface, address: $0)] }
                routes.insert(
                    DefaultRoute(
                        interface: name, gateway: key.gateway, gatewayLink: link, isIPv6: key.isIPv6,
                        metric: key.metric))
            case .neighbour, .done, .failed, .other:
                continue
            }
        }
        defaultRoutes = routes.sorted { left, right in
            left.metric != right.metric ? left.metric < right.metric : Self.order(left) < Self.order(right)
        }
        self.addresses = addresses.sorted { Self.order($0) < Self.order($1) }
    }

    private struct Neighbour: Hashable {
        var interface: UInt32
        var address: SocketAddress.Address
    }

    /// An address on the link as it is usually written.
    static func text(_ link: [UInt8]) -> String {
        link.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: ":")
    }

    private static func order(_ route: DefaultRoute) -> String {
        "\(route.isIPv6 ? 6 : 4) \(route.interface) \(route.gateway.map(text) ?? "")"
    }

    private static func order(_ address: LocalAddress) -> String {
        "\(address.interface) \(text(address.address))/\(address.prefixLength)"
    }

    private static func text(_ address: SocketAddress.Address) -> String {
        switch address {
        case .ipv4(let address): "\(address)"
        case .ipv6(let address, _): "\(address)"
        }
    }
}
