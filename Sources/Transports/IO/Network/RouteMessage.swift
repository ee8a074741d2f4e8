package import TransportKit

/// One message of the kernel's routing socket, as far as the network watch reads them (rtnetlink(7)).
package enum RouteMessage: Equatable {
    /// An interface has an address.
    case address(interface: UInt32, SocketAddress.Address, prefixLength: UInt8)
    /// A default route of the main table.
    case defaultRoute(NetworkState.DefaultRoute.Key)
    /// The link-layer address of a neighbour; nil where it is not known, or not any more.
    case neighbour(interface: UInt32, SocketAddress.Address, link: [UInt8]?)
    /// The dump with this number is complete.
    case done(sequence: UInt32)
    /// The request with this number was refused.
    case failed(sequence: UInt32)
    /// Something has changed, or a dump has a message that does not matter here.
    case other

    /// A message with its number; the kernel's own announcements have 0.
    package struct Numbered: Equatable {
        package let sequence: UInt32
        package let message: RouteMessage
    }

    /// Takes a datagram apart. What is malformed ends the parse; nothing traps.
    package static func parse(_ bytes: UnsafeRawBufferPointer) -> [Numbered] {
        var messages: [Numbered] = []
        var reader = unsafe NetlinkReader(bytes)
        while let length = reader.native32(), let type = reader.native16(), reader.native16() != nil,
            let sequence = reader.native32(), reader.native32() != nil,
            let body = reader.part(Int(length) - 16)
        {
            messages.append(Numbered(sequence: sequence, message: message(type, sequence, body)))
            reader.align()
        }
        return messages
    }

    private static func message(_ type: UInt16, _ sequence: UInt32, _ body: NetlinkReader) -> RouteMessage {
        switch type {
        case 2: .failed(sequence: sequence)
        case 3: .done(sequence: sequence)
        case 20: address(body) ?? .other
        case 24: route(body) ?? .other
        case 28: neighbour(body, isGone: false) ?? .other
        case 29: neighbour(body, isGone: true) ?? .other
        default: .other
        }
    }

    /// struct ifaddrmsg and its attributes.
    private static func address(_ body: NetlinkReader) -> RouteMessage? {
        var body = body
        guard let family = body.byte(), let prefixLength = body.byte(), body.byte() != nil, body.byte() != nil,
            let interface = body.native32()
        else { return nil }
        var address: SocketAddress.Address?
        while let (type, value) = body.attribute() {
            // IFA_LOCAL is this end's address where IFA_ADDRESS is the peer's.
            if type == 2 || (type == 1 && address == nil) { address = value.address(family: family) ?? address }
        }
        guard let address else { return nil }
        return .address(interface: interface, address, prefixLength: prefixLength)
    }

    /// struct rtmsg and its attributes.
    private static func route(_ body: NetlinkReader) -> RouteMessage? {
        var body = body
        guard let family = body.byte(), let destinationLength = body.byte(), body.byte() != nil, body.byte() != nil,
            let table = body.byte(), body.byte() != nil, body.byte() != nil, let kind = body.byte(),
            body.native32() != nil
        else { return nil }
        // RT_TABLE_MAIN, RTN_UNICAST.
        guard destinationLength == 0, table == 254, kind == 1 else { return nil }
        var key = NetworkState.DefaultRoute.Key(isIPv6: family == 10, interface: 0, gateway: nil, metric: 0)
        while let (type, value) = body.attribute() {
            var value = value
            switch type {
            case 4: key.interface = value.native32() ?? 0
            case 5: key.gateway = value.address(family: family)
            case 6: key.metric = value.native32() ?? 0
            default: break
            }
        }
        return key.interface == 0 ? nil : .defaultRoute(key)
    }

    /// struct ndmsg and its attributes.
    private static func neighbour(_ body: NetlinkReader, isGone: Bool) -> RouteMessage? {
        var body = body
        guard let family = body.byte(), body.byte() != nil, body.native16() != nil, let interface = body.native32(),
            let state = body.native16(), body.byte() != nil, body.byte() != nil
        else { return nil }
        var address: SocketAddress.Address?
        var link: [UInt8]?
        while let (type, value) = body.attribute() {
            switch type {
            case 1: address = value.address(family: family)
            case 2: link = value.all(atMost: 32)
            default: break
            }
        }
        guard let address else { return nil }
        // NUD_REACHABLE, STALE, DELAY, PROBE and PERMANENT: the kernel knows where to send.
        let isKnown = !isGone && state & 0x9e != 0 && link.map { $0.contains { $0 != 0 } } ?? false
        return .neighbour(interface: interface, address, link: isKnown ? link : nil)
    }
}

/// Reads netlink's fields, which stand in the machine's byte order, without ever leaving its bytes.
@safe private struct NetlinkReader {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        unsafe self.bytes = bytes
    }

    private var left: Int { unsafe bytes.count - offset }

    mutating func byte() -> UInt8? { load(UInt8.self) }
    mutating func native16() -> UInt16? { load(UInt16.self) }
    mutating func native32() -> UInt32? { load(UInt32.self) }

    private mutating func load<Number: FixedWidthInteger & BitwiseCopyable>(_: Number.Type) -> Number? {
        let size = MemoryLayout<Number>.size
        guard left >= size else { return nil }
        defer { offset += size }
        return unsafe bytes.loadUnaligned(fromByteOffset: offset, as: Number.self)
    }

    /// The next `count` bytes.
    mutating func part(_ count: Int) -> NetlinkReader? {
        guard count >= 0, count <= left else { return nil }
        defer { offset += count }
        return unsafe NetlinkReader(UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
    }

    mutating func align() { unsafe offset = min((offset + 3) & ~3, bytes.count) }

    /// The next attribute: length, type, value, padding.
    mutating func attribute() -> (type: UInt16, value: NetlinkReader)? {
        guard let length = native16(), let type = native16(), let value = part(Int(length) - 4) else { return nil }
        align()
        return (type, value)
    }

    /// What is left, where that is not more than `limit` bytes.
    func all(atMost limit: Int) -> [UInt8]? {
        guard (1...limit).contains(left) else { return nil }
        return unsafe Array(bytes[offset...])
    }

    func address(family: UInt8) -> SocketAddress.Address? {
        var reader = self
        switch (family, left) {
        case (2, 4):
            return reader.native32().map { .ipv4(IPv4Address(value: UInt32(bigEndian: $0))) }
        case (10, 16):
            guard let high = reader.load(UInt64.self), let low = reader.load(UInt64.self) else { return nil }
            return .ipv6(IPv6Address(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low)), scopeID: 0)
        default:
            return nil
        }
    }
}
