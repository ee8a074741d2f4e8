package import TransportIO
package import TransportKit

/// Decides when a change of the network is a reason for carriers to look whether they still have one (R60). A pure value.
///
/// It is one for the edge from offline to online, and where the route or the source address of a live session changes;
/// the many announcements that change neither are none.
package struct WakeRule: Sendable {
    /// Why carriers are woken.
    package enum Reason: Sendable, Hashable {
        /// There is a way out again.
        case back
        /// Packets leave by another router or interface.
        case otherRoute
        /// The same address belongs to another router.
        case otherRouter
        /// A session stood on an address that the machine has no longer.
        case addressGone
        /// The machine was suspended.
        case slept(Duration)
        /// The program did not run for a while.
        case stoodStill(Duration)
    }

    private var last: NetworkState

    /// Starts from a state.
    package init(_ state: NetworkState) {
        last = state
    }

    /// The machine's network is this now.
    ///
    /// - Parameter live: the addresses of this machine that sessions stand on.
    /// - Returns: why carriers should be woken; nil where there is no reason to.
    package mutating func see(_ state: NetworkState, live: Set<SocketAddress.Address>) -> Reason? {
        defer { last = state }
        guard state.isOnline else { return nil }
        guard last.isOnline else { return .back }
        for isIPv6 in [false, true] {
            // Where nothing stands, whoever waits may have waited for this.
            guard live.isEmpty || live.contains(where: { $0.isIPv6 == isIPv6 }) else { continue }
            let (old, new) = (last.preferredRoute(isIPv6: isIPv6), state.preferredRoute(isIPv6: isIPv6))
            guard old?.interface == new?.interface, old?.gateway == new?.gateway else { return .otherRoute }
            if let link = old?.gatewayLink, let now = new?.gatewayLink, link != now { return .otherRouter }
        }
        let lost = Set(last.addresses.map(\.address)).subtracting(state.addresses.map(\.address))
        return lost.isDisjoint(with: live) ? nil : .addressGone
    }
}

extension WakeRule.Reason: CustomStringConvertible {
    /// The reason in words.
    package var description: String {
        switch self {
        case .back: "the network is back"
        case .otherRoute: "the default route has changed"
        case .otherRouter: "another router answers at the gateway's address"
        case .addressGone: "an address that a session stood on is gone"
        case .slept(let duration): "the machine slept for \(duration.components.seconds) s"
        case .stoodStill(let duration): "the program stood still for \(duration.components.seconds) s"
        }
    }
}

extension SocketAddress.Address {
    /// Whether it is an address of IPv6.
    var isIPv6: Bool {
        switch self {
        case .ipv4: false
        case .ipv6: true
        }
    }
}
