internal import TransportKit

/// Which ports the config file has given away, so that two who want the same are found before either binds.
struct PortUse {
    /// The two sets of port numbers.
    enum Kind: String, Hashable, Comparable {
        case tcp = "TCP"
        case udp = "UDP"

        static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }
    }

    private struct Taken {
        var kind: Kind
        var host: Host
        var port: UInt16
        var node: ConfigNode
    }

    private var taken: [Taken] = []

    /// Gives a port to `node`.
    mutating func take(_ kind: Kind, _ host: Host, _ port: UInt16, at node: ConfigNode) throws(ConfigError) {
        guard port > 0 else { return }
        if let other = taken.first(where: {
            $0.kind == kind && $0.port == port && Self.overlap($0.host, host) && $0.node.path != node.path
        }) {
            let line = other.node.place.line.map { " in line \($0)" } ?? ""
            throw node.error(
                "\(kind.rawValue) port \(port) is taken by \(other.node.path)\(line); choose another port or address")
        }
        taken.append(Taken(kind: kind, host: host, port: port, node: node))
    }

    /// Whether two hosts may be the same address of this machine: equal, or one of them stands for all.
    private static func overlap(_ left: Host, _ right: Host) -> Bool {
        if left == right || isWildcard(left) || isWildcard(right) { return true }
        // `localhost` may be either loopback address; the two addresses themselves are apart.
        return isLoopback(left) && isLoopback(right) && !(left.isLiteral && right.isLiteral)
    }

    private static func isWildcard(_ host: Host) -> Bool {
        switch host {
        case .name: false
        case .ipv4(let address): address == .any
        case .ipv6(let address, _): address == .any
        }
    }

    private static func isLoopback(_ host: Host) -> Bool {
        switch host {
        case .name(let name): name == "localhost"
        case .ipv4(let address): address == .loopback
        case .ipv6(let address, _): address == .loopback
        }
    }
}
