public import TransportKit

extension DirectCarrier {
    /// The addresses of this machine that its open sessions stand on.
    public nonisolated var localAddresses: [SocketAddress] {
        state.sockets.compactMap(\.info.localAddress)
    }
}
