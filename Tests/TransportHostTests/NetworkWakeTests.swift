import Synchronization
import Testing
import TransportHost
import TransportIO
import TransportKit
import TransportKitTesting

/// What a network is called, and when its changes wake the carriers; all of it values.
struct NetworkWakeTests {
    static let router = SocketAddress.Address.ipv4(IPv4Address(value: 0xc000_0201))
    static let other = SocketAddress.Address.ipv4(IPv4Address(value: 0xc000_0202))
    static let router6 = SocketAddress.Address.ipv6(IPv6Address(high: 0xfe80 << 48, low: 1), scopeID: 0)
    static let home = SocketAddress.Address.ipv4(IPv4Address(value: 0xc000_024d))
    static let renewed = SocketAddress.Address.ipv4(IPv4Address(value: 0xc000_024e))
    static let home6 = SocketAddress.Address.ipv6(IPv6Address(high: 0x2001_0db8 << 32, low: 7), scopeID: 0)

    /// A state with one interface; `link` is the router's address on it.
    func state(
        _ router: SocketAddress.Address?, link: UInt8? = nil, router6: SocketAddress.Address? = nil,
        addresses: [SocketAddress.Address] = [Self.home], metric: UInt32 = 0, interface: UInt32 = 2
    ) -> NetworkState {
        var messages: [RouteMessage] = addresses.map { .address(interface: interface, $0, prefixLength: 24) }
        for (isIPv6, gateway) in [(false, router), (true, router6)] {
            guard let gateway else { continue }
            messages.append(
                .defaultRoute(.init(isIPv6: isIPv6, interface: interface, gateway: gateway, metric: metric)))
        }
        if let router, let link {
            messages.append(.neighbour(interface: interface, router, link: [2, 0, 0, 0, 0, link]))
        }
        return NetworkState(messages) { "eth\($0)" }
    }

    // R57
    @Test func `A dial's name for the network stays when its router becomes known`() {
        var attachment = NetworkAttachment()
        let vague = "eth2/192.0.2.1"
        #expect(attachment.see(state(Self.router).name) == .began(stay: vague, vague: vague))
        #expect(attachment.name == vague)
        #expect(
            attachment.see(state(Self.router, link: 7).name)
                == .recognized(stay: vague, full: "eth2/192.0.2.1/02:00:00:00:00:07"))
        #expect(attachment.name == vague)
        // It is said once, and the kernel may forget the router again.
        #expect(attachment.see(state(Self.router, link: 7).name) == nil)
        #expect(attachment.see(state(Self.router).name) == nil)
        #expect(attachment.see(state(Self.router, link: 7).name) == nil)
        #expect(attachment.name == vague)
        #expect(attachment.fullName == "eth2/192.0.2.1/02:00:00:00:00:07")
        // Another router with the same address is another network.
        #expect(attachment.see(state(Self.router, link: 8).name) == nil)
        #expect(attachment.name == "eth2/192.0.2.1/02:00:00:00:00:08")
        #expect(attachment.see(nil) == nil)
        #expect(attachment.name == nil)
        #expect(attachment.see(state(Self.router, link: 7).name) == nil)
        #expect(attachment.name == "eth2/192.0.2.1/02:00:00:00:00:07")
    }

    // R54, B48
    @Test func `Each stay under a vague name has a name of its own`() {
        var attachment = NetworkAttachment()
        let vague = "eth2/192.0.2.1"
        _ = attachment.see(state(Self.router).name)
        for number in 2...3 {
            _ = attachment.see(nil)
            let stay = "\(vague)#\(number)"
            #expect(attachment.see(state(Self.router).name) == .began(stay: stay, vague: vague))
            #expect(attachment.name == stay)
            #expect(
                attachment.see(state(Self.router, link: UInt8(number)).name)
                    == .recognized(stay: stay, full: "\(vague)/02:00:00:00:00:0\(number)"))
            #expect(attachment.name == stay)
        }
        // Another interface, and back without having been offline.
        let other = "eth3/192.0.2.1"
        #expect(attachment.see(state(Self.router, interface: 3).name) == .began(stay: other, vague: other))
        #expect(attachment.see(state(Self.router).name) == .began(stay: "\(vague)#4", vague: vague))
    }

    // R60
    @Test func `Carriers wake once on the edge to online, and not on its announcements`() {
        var rule = WakeRule(state(Self.router))
        let live: Set = [Self.home]
        #expect(rule.see(NetworkState(), live: live) == nil)
        #expect(rule.see(state(nil, addresses: [Self.renewed]), live: []) == nil)
        #expect(rule.see(state(Self.router, addresses: [Self.renewed]), live: []) == .back)
        for update in [
            state(Self.router, addresses: [Self.renewed]),
            state(Self.router, link: 1, addresses: [Self.renewed]),
            state(Self.router, link: 1, addresses: [Self.renewed], metric: 600),
            state(Self.router, link: 1, addresses: [Self.renewed, Self.home6], metric: 600),
            state(Self.router, link: 1, addresses: [Self.renewed], metric: 600),
            state(Self.router, addresses: [Self.renewed], metric: 600),
        ] {
            #expect(rule.see(update, live: [Self.renewed]) == nil)
        }
    }

    // R60
    @Test func `Carriers wake when the route or the address that a session stands on changes`() {
        let live: Set = [Self.home]
        var rule = WakeRule(state(Self.router, link: 1))
        #expect(rule.see(state(Self.other, link: 2), live: live) == .otherRoute)
        #expect(rule.see(state(Self.other, link: 2), live: live) == nil)
        #expect(rule.see(state(Self.other, link: 2, interface: 3), live: live) == .otherRoute)
        #expect(rule.see(state(Self.other, link: 4, interface: 3), live: live) == .otherRouter)
        #expect(
            rule.see(state(Self.other, link: 4, addresses: [Self.renewed], interface: 3), live: live) == .addressGone)
        #expect(rule.see(state(Self.other, link: 4, addresses: [Self.renewed], interface: 3), live: live) == nil)
    }

    // R60
    @Test func `The other family's routes wake only where nothing stands, or something stands on it`() {
        var rule = WakeRule(state(Self.router))
        let both = state(Self.router, router6: Self.router6, addresses: [Self.home, Self.home6])
        #expect(rule.see(both, live: [Self.home]) == nil)
        #expect(rule.see(state(Self.router, addresses: [Self.home, Self.home6]), live: [Self.home]) == nil)
        #expect(rule.see(both, live: []) == .otherRoute)
        #expect(rule.see(state(Self.router), live: [Self.home6]) == .otherRoute)
        #expect(rule.see(both, live: [Self.home]) == nil)
        #expect(rule.see(state(nil, router6: Self.router6, addresses: [Self.home6]), live: [Self.home]) == .otherRoute)
    }

    // R60
    @Test func `A gap between the clocks and a late timer wake, each once`() {
        var boot = Instant(nanoseconds: 1_000_000_000_000)
        var awake = Duration.seconds(900)
        var gap = ClockGap(boot: boot, awake: awake)
        func look(after duration: Duration, slept: Duration = .zero) -> WakeRule.Reason? {
            boot = boot + duration + slept
            awake += duration
            return gap.see(boot: boot, awake: awake)
        }
        #expect(gap.planned == boot + .seconds(5))
        for _ in 0..<100 { #expect(look(after: .milliseconds(5003)) == nil) }
        #expect(look(after: .seconds(15)) == nil)
        #expect(look(after: .milliseconds(15_001)) == .stoodStill(.milliseconds(10_001)))
        #expect(look(after: .seconds(5)) == nil)
        #expect(look(after: .seconds(1), slept: .milliseconds(1900)) == nil)
        #expect(look(after: .seconds(1), slept: .seconds(3600)) == .slept(.seconds(3600)))
        #expect(look(after: .seconds(5)) == nil)
    }

    // R60
    @Test func `A wake that takes its time hides no gap, and is none itself`() throws {
        let simulation = Simulation()
        let reasons = Mutex<[WakeRule.Reason]>([])
        let asleep = Mutex(Duration.zero)
        let time = simulation.time
        let watching = simulation.start {
            await ClockGap.watch(time, awake: { time.now() - .zero - asleep.withLock(\.self) }) { reason in
                reasons.withLock { $0.append(reason) }
                try? await time.sleep(for: .seconds(60))
            }
        }
        simulation.advance(by: .seconds(7))
        for _ in 0..<2 {
            asleep.withLock { $0 += .seconds(3600) }
            time.advance(by: .seconds(3600))
            // The first wake is still under way at the second.
            simulation.advance(by: .seconds(6))
        }
        simulation.advance(by: .seconds(200))
        #expect(reasons.withLock(\.self) == [.slept(.seconds(3600)), .slept(.seconds(3600))])
        watching.cancel()
        simulation.drain()
    }
}
