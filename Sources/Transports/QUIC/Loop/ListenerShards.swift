internal import Synchronization
internal import TransportKit

/// The endpoints of a listener that several loops share: each has a socket of the same port, and the first byte of a
/// connection's id is the number of the endpoint where it lives.
final class ListenerShards: Sendable {
    /// A datagram that came to the wrong loop.
    struct Stray: Sendable {
        let bytes: Bytes
        let remote: SocketAddress
        let local: SocketAddress
        let ecn: UInt8
    }

    private struct Shard {
        let endpoint: LoopBound<Weak>
        var waiting = 0
    }

    /// The endpoints keep each other's table, not each other.
    final class Weak {
        weak var endpoint: ListenerEndpoint?

        init(_ endpoint: ListenerEndpoint) { self.endpoint = endpoint }
    }

    /// So many datagrams may wait for a loop that is busy; more are lost, as in the kernel.
    private static let waitingLimit = 4096

    private let shards = Mutex<[Shard]>([])

    var count: Int { shards.withLock(\.count) }

    /// The number of the endpoint that is added next.
    var nextNumber: UInt8 { UInt8(clamping: count) }

    func add(_ endpoint: LoopBound<ListenerEndpoint>) {
        let weak = LoopBound(Weak(endpoint.onLoop), on: endpoint.loop)
        shards.withLock { $0.append(Shard(endpoint: weak)) }
    }

    /// Hands datagrams to the endpoint where their connections live.
    func give(_ strays: [Stray], to number: UInt8) {
        let index = Int(number)
        let endpoint = shards.withLock { shards -> LoopBound<Weak>? in
            guard index < shards.count, shards[index].waiting + strays.count <= Self.waitingLimit else { return nil }
            shards[index].waiting += strays.count
            return shards[index].endpoint
        }
        endpoint?.post { [self] weak in
            shards.withLock { $0[index].waiting -= strays.count }
            weak.endpoint?.take(strays)
        }
    }
}
