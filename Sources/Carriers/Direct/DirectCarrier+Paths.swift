public import TransportKit

extension DirectCarrier {
    /// The addresses of this machine that its open sessions stand on.
    public nonisolated var localAddresses: [SocketAddress] {
        state.sockets.compactMap(\.info.localAddress)
    }

    /// What it dials.
    public nonisolated var destination: ServiceURL { url }

    /// The names of its race policy and its demotion policy.
    public nonisolated var policies: (race: String, demotion: String) { (racePolicy.name, ledger.policyName) }

    /// Whether a transport that was demoted goes last in a dial at `now`, by the policy of this carrier.
    public nonisolated func standsBack(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool {
        ledger.standsBack(transport, history: history, at: now)
    }
}
