internal import CLinux
internal import TransportKit

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

    /// Whether it is `::` or `0.0.0.0`.
    var isAny: Bool {
        switch address {
        case .ipv4(let address): address == .any
        case .ipv6(let address, _): address == .any
        }
    }
}
