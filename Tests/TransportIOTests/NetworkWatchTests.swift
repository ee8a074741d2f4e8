import Glibc
import Testing
import TransportIO
import TransportKit

@Suite(.timeLimit(.minutes(1))) struct NetworkWatchTests {
    /// Writes netlink messages as the kernel does.
    struct Netlink {
        var bytes: [UInt8] = []

        static func native<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
            withUnsafeBytes(of: number) { Array($0) }
        }

        static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
            let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
            return native(UInt16(value.count + 4)) + native(type) + value + padding
        }

        mutating func append(type: UInt16, sequence: UInt32, body: [UInt8]) {
            bytes += Self.native(UInt32(body.count + 16)) + Self.native(type) + Self.native(UInt16(2))
            bytes += Self.native(sequence) + Self.native(UInt32(0)) + body
        }

        mutating func address(_ address: [UInt8], on interface: UInt32, prefixLength: UInt8, sequence: UInt32) {
            let family: UInt8 = address.count == 4 ? 2 : 10
            append(
                type: 20, sequence: sequence,
                body: [family, prefixLength, 0, 0] + Self.native(interface) + Self.attribute(1, address))
        }

        mutating func defaultRoute(gateway: [UInt8], on interface: UInt32, table: UInt8 = 254, sequence: UInt32) {
            let family: UInt8 = gateway.count == 4 ? 2 : 10
            append(
                type: 24, sequence: sequence,
                body: [family, 0, 0, 0, table, 3, 0, 1] + Self.native(UInt32(0))
                    + Self.attribute(4, Self.native(interface)) + Self.attribute(5, gateway))
        }

        mutating func neighbour(
            _ address: [UInt8], link: [UInt8], on interface: UInt32, state: UInt16 = 2, type: UInt16 = 28,
            sequence: UInt32
        ) {
            let family: UInt8 = address.count == 4 ? 2 : 10
            append(
                type: type, sequence: sequence,
                body: [family, 0, 0, 0] + Self.native(interface) + Self.native(state) + [0, 1]
                    + Self.attribute(1, address) + Self.attribute(2, link))
        }

        mutating func done(sequence: UInt32) { append(type: 3, sequence: sequence, body: [0, 0, 0, 0]) }
    }

    static let gateway: [UInt8] = [192, 0, 2, 1]
    static let host: [UInt8] = [192, 0, 2, 77]
    static let link: [UInt8] = [2, 0, 0x5e, 0x10, 0, 1]

    @Test func `Addresses and default routes are read, other tables let pass`() {
        var netlink = Netlink()
        netlink.address(Self.host, on: 3, prefixLength: 24, sequence: 1)
        netlink.defaultRoute(gateway: Self.gateway, on: 3, sequence: 2)
        netlink.defaultRoute(gateway: Self.gateway, on: 3, table: 200, sequence: 2)
        netlink.done(sequence: 2)
        let messages = netlink.bytes.withUnsafeBytes { RouteMessage.parse($0) }
        #expect(
            messages.map(\.message) == [
                .address(interface: 3, .ipv4(IPv4Address(value: 0xc000_024d)), prefixLength: 24),
                .defaultRoute(
                    NetworkState.DefaultRoute.Key(
                        isIPv6: false, interface: 3, gateway: .ipv4(IPv4Address(value: 0xc000_0201)), metric: 0)),
                .other,
                .done(sequence: 2),
            ])
        #expect(messages.map(\.sequence) == [1, 2, 2, 2])
    }

    @Test func `Bytes cut off or bent anywhere are survived`() {
        var netlink = Netlink()
        netlink.address(Self.host, on: 3, prefixLength: 24, sequence: 1)
        netlink.defaultRoute(gateway: Self.gateway, on: 3, sequence: 2)
        netlink.neighbour(Self.gateway, link: Self.link, on: 3, sequence: 3)
        for count in 0...netlink.bytes.count {
            let messages = netlink.bytes[..<count].withUnsafeBytes { RouteMessage.parse($0) }
            #expect(messages.count <= 3)
        }
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5000 {
            var bent = netlink.bytes
            bent[Int.random(in: bent.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            bent.withUnsafeBytes { _ = RouteMessage.parse($0) }
        }
    }

    @Test func `A network has a name only where it has a router`() {
        func state(_ keys: [NetworkState.DefaultRoute.Key]) -> NetworkState {
            NetworkState(keys.map { .defaultRoute($0) }) { ["lo", "wlan0", "wwan0"][Int($0) - 1] }
        }
        let router = SocketAddress.Address.ipv4(IPv4Address(value: 0xc000_0201))
        let home = state([.init(isIPv6: false, interface: 2, gateway: router, metric: 600)])
        #expect(home.isOnline)
        #expect(home.name?.vague == "wlan0/192.0.2.1")
        #expect(home.name?.full == nil)
        let mobile = state([.init(isIPv6: false, interface: 3, gateway: nil, metric: 0)])
        #expect(mobile.isOnline)
        #expect(mobile.name == nil)
        #expect(!NetworkState().isOnline)
        #expect(NetworkState().name == nil)
        // What leaves by the modem is not on the network of the router beside it.
        let both = state([
            .init(isIPv6: false, interface: 2, gateway: router, metric: 600),
            .init(isIPv6: false, interface: 3, gateway: nil, metric: 0),
        ])
        #expect(both.defaultRoutes.map(\.interface) == ["wwan0", "wlan0"])
        #expect(both.name == nil)
        let router6 = SocketAddress.Address.ipv6(IPv6Address(high: 0xfe80 << 48, low: 1), scopeID: 0)
        let alone = state([.init(isIPv6: true, interface: 2, gateway: router6, metric: 100)])
        #expect(alone.name?.vague == "wlan0/fe80::1")
        // The router of IPv6 comes later and may go again; the network stays the same.
        let dual = state([
            .init(isIPv6: true, interface: 2, gateway: router6, metric: 100),
            .init(isIPv6: false, interface: 2, gateway: router, metric: 600),
        ])
        #expect(dual.name == home.name)
    }

    // R57
    @Test func `The router's address on the link is a part of the name, as far as the kernel knows it`() {
        func name(state: UInt16, type: UInt16 = 28, link: [UInt8] = Self.link, interface: UInt32 = 3) -> String? {
            var netlink = Netlink()
            netlink.defaultRoute(gateway: Self.gateway, on: 3, sequence: 1)
            netlink.neighbour(
                Self.gateway, link: link, on: interface, state: state, type: type, sequence: 1)
            let messages = netlink.bytes.withUnsafeBytes { RouteMessage.parse($0) }
            return NetworkState(messages.map(\.message)) { ["", "", "", "eth0", "eth1"][Int($0)] }.name?.full
        }
        // NUD_REACHABLE, STALE, DELAY, PROBE, PERMANENT
        for state: UInt16 in [2, 4, 8, 0x10, 0x80] {
            #expect(name(state: state) == "eth0/192.0.2.1/02:00:5e:10:00:01")
        }
        // NUD_INCOMPLETE, FAILED, NOARP, NONE
        for state: UInt16 in [1, 0x20, 0x40, 0] { #expect(name(state: state) == nil) }
        #expect(name(state: 2, type: 29) == nil)
        #expect(name(state: 2, link: [0, 0, 0, 0, 0, 0]) == nil)
        #expect(name(state: 2, link: []) == nil)
        #expect(name(state: 2, interface: 4) == nil)
    }

    /// Plays the kernel's end of a routing socket.
    final class Kernel: Sendable {
        let descriptor: Int32

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        func send(_ netlink: Netlink) {
            netlink.bytes.withUnsafeBytes { _ = Glibc.send(descriptor, $0.baseAddress, $0.count, 0) }
        }

        /// Waits for a request and returns its type and number.
        func request() -> (type: UInt16, sequence: UInt32) {
            var bytes = [UInt8](repeating: 0, count: 64)
            _ = recv(descriptor, &bytes, bytes.count, 0)
            return bytes.withUnsafeBytes {
                (
                    $0.loadUnaligned(fromByteOffset: 4, as: UInt16.self),
                    $0.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
                )
            }
        }

        /// Answers one listing.
        func serve(gateway: [UInt8]?, link: [UInt8]? = nil) {
            var addresses = Netlink()
            let first = request()
            addresses.address(NetworkWatchTests.host, on: 3, prefixLength: 24, sequence: first.sequence)
            addresses.done(sequence: first.sequence)
            send(addresses)
            var routes = Netlink()
            let second = request()
            if let gateway { routes.defaultRoute(gateway: gateway, on: 3, sequence: second.sequence) }
            routes.done(sequence: second.sequence)
            send(routes)
            var neighbours = Netlink()
            let third = request()
            if let gateway, let link { neighbours.neighbour(gateway, link: link, on: 3, sequence: third.sequence) }
            neighbours.done(sequence: third.sequence)
            send(neighbours)
        }
    }

    @Test func `The first state is known at the start, and each announcement leads to the next`() async throws {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0)
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        let kernel = Kernel(ends[1])
        let loop = try EventLoop(name: "test")
        async let serving: Void = kernel.serve(gateway: Self.gateway)
        let watch = try await NetworkWatch.start(loop: loop, descriptor: ends[0]) { $0 == 3 ? "eth0" : nil }
        await serving
        #expect(watch.current.name == NetworkState.Name(vague: "eth0/192.0.2.1", full: nil))
        #expect(watch.current.addresses.map(\.interface) == ["eth0"])
        var changes = watch.changes.makeAsyncIterator()
        #expect(await changes.next()?.isOnline == true)
        // Other neighbours, and this one's failing, lead to no listing; that it becomes known does.
        var neighbours = Netlink()
        neighbours.neighbour([192, 0, 2, 9], link: Self.link, on: 3, sequence: 0)
        neighbours.neighbour(Self.gateway, link: Self.link, on: 3, state: 0x20, sequence: 0)
        kernel.send(neighbours)
        neighbours = Netlink()
        neighbours.neighbour(Self.gateway, link: Self.link, on: 3, sequence: 0)
        kernel.send(neighbours)
        kernel.serve(gateway: Self.gateway, link: Self.link)
        #expect(await changes.next()?.name?.full == "eth0/192.0.2.1/02:00:5e:10:00:01")
        // RTM_DELROUTE, then a listing without the route.
        var announcement = Netlink()
        announcement.append(type: 25, sequence: 0, body: [UInt8](repeating: 0, count: 12))
        kernel.send(announcement)
        kernel.serve(gateway: nil)
        #expect(await changes.next()?.isOnline == false)
        #expect(!watch.current.isOnline)
        watch.stop()
        #expect(await changes.next() == nil)
        await loop.shutdown()
        close(ends[1])
    }

    @Test func `The machine's own state can be read`() async throws {
        let loop = try EventLoop(name: "test")
        let watch = try await NetworkWatch.start(loop: loop)
        let state = watch.current
        #expect(state.defaultRoutes.allSatisfy { !$0.interface.isEmpty })
        #expect(!state.addresses.contains { $0.interface == "lo" })
        watch.stop()
        await loop.shutdown()
    }
}
