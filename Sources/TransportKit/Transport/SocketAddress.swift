/// An address with a port: what a socket is bound or connected to.
public struct SocketAddress: Sendable, Hashable {
    /// The address alone.
    public enum Address: Sendable, Hashable {
        /// IPv4.
        case ipv4(IPv4Address)
        /// IPv6, with the number of the interface it is scoped to, or 0.
        case ipv6(IPv6Address, scopeID: UInt32)
    }

    /// The address alone.
    public var address: Address
    /// The port; 0 lets the system choose.
    public var port: UInt16

    /// Makes an address with a port.
    public init(_ address: Address, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// 127.0.0.1 with a port.
    public static func loopback(port: UInt16 = 0) -> SocketAddress {
        SocketAddress(.ipv4(.loopback), port: port)
    }

    /// Whether it is an IPv6 address.
    public var isIPv6: Bool {
        switch address {
        case .ipv4: false
        case .ipv6: true
        }
    }
}

extension SocketAddress: CustomStringConvertible {
    /// For example `192.0.2.1:443` or `[2001:db8::1]:443`.
    public var description: String {
        switch address {
        case .ipv4(let address): "\(address):\(port)"
        case .ipv6(let address, scopeID: 0): "[\(address)]:\(port)"
        case .ipv6(let address, let scopeID): "[\(address)%\(scopeID)]:\(port)"
        }
    }
}
