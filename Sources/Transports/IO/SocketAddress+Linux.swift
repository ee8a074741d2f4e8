internal import CLinux
package import TransportKit

extension SocketAddress {
    /// Reads what C gives out; nil where it holds no address.
    init?(_ address: tk_address) {
        switch address.family {
        case 4: self.init(.ipv4(IPv4Address(value: UInt32(truncatingIfNeeded: address.low))), port: address.port)
        case 6:
            let value = IPv6Address(high: address.high, low: address.low)
            self.init(.ipv6(value, scopeID: address.scope), port: address.port)
        default: return nil
        }
    }

    /// The form that C takes.
    var linux: tk_address {
        var result = tk_address()
        switch address {
        case .ipv4(let address):
            result.family = 4
            result.low = UInt64(address.value)
        case .ipv6(let address, let scopeID):
            result.family = 6
            result.high = address.high
            result.low = address.low
            result.scope = scopeID
        }
        result.port = port
        return result
    }

    /// The address that this machine would send from to this one now; nil where there is no way.
    package var source: SocketAddress? {
        // Connecting UDP sends nothing.
        let descriptor = tk_udp_connect(linux)
        guard descriptor >= 0 else { return nil }
        defer { tk_close(descriptor) }
        return SocketAddress(tk_local_address(descriptor))
    }

    /// Whether two addresses of this machine are of one network, as far as they tell: IPv6 has many of each, and takes
    /// another now and then (RFC 8981).
    package func isBeside(_ other: SocketAddress) -> Bool {
        switch (address, other.address) {
        case (.ipv4(let left), .ipv4(let right)): left == right
        case (.ipv6(let left, _), .ipv6(let right, _)): left.high == right.high
        case (.ipv4, .ipv6), (.ipv6, .ipv4): false
        }
    }

    /// Whether it is `::` or `0.0.0.0`.
    var isAny: Bool {
        switch address {
        case .ipv4(let address): address == .any
        case .ipv6(let address, _): address == .any
        }
    }
}
