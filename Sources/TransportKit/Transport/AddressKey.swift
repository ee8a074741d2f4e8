/// Whom a limit counts: an IPv4 address, or the /64 of an IPv6 address, of which one subscriber has all.
package enum AddressKey: Sendable, Hashable {
    case ipv4(UInt32)
    case ipv6(UInt64)

    package init(_ address: SocketAddress) {
        switch address.address {
        case .ipv4(let address):
            self = .ipv4(address.value)
        case .ipv6(let address, _):
            // An IPv4 address in the dress of IPv6 (RFC 4291 §2.5.5.2) is the same peer.
            let isMapped = address.high == 0 && address.low >> 32 == 0xffff
            self = isMapped ? .ipv4(UInt32(truncatingIfNeeded: address.low)) : .ipv6(address.high)
        }
    }
}
