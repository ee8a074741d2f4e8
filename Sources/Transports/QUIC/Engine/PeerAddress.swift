internal import TransportKit

/// Under which names the library of the listening end knows the paths that its client comes by.
///
/// Each address that a client comes from, and each return to one, is a path of its own that seems to end at another port
/// of this end. So the library always does what it does where a client has moved to another network: it takes another id
/// for the path, forgets the congestion of the one before, and sends its challenge at once (RFC 9000 §9.3).
///
/// Told the truth, ngtcp2 0.12 takes a new port of the client's for the old path. What was on its way to the old port
/// then fills the congestion window, which holds up the challenge too until a timer fires that was doubled with each
/// packet into the void: for seconds (B32). And where the id is the old one too, it retires that twice, or fails an
/// assertion, once the client moves on.
struct PeerAddress {
    /// Where the client comes from, and the port at this end that its path has for the library.
    private struct Place {
        let remote: SocketAddress
        let port: UInt16
    }

    /// More of them are of somebody who has seen an id and invents addresses.
    private static let mostOthers = 4

    /// The port of this end.
    private let port: UInt16
    /// Where the client was last seen to be; nil where that is a path no longer.
    private var current: Place?
    /// Where packets came from that did not move it: they were late, only tried a path, or were anybody's.
    private var others: [Place] = []
    private var lastPort: UInt16

    init(_ remote: SocketAddress, to local: SocketAddress) {
        port = local.port
        lastPort = local.port
        current = Place(remote: remote, port: local.port)
    }

    /// What the library is told for `local`, to which a packet came.
    mutating func name(of remote: SocketAddress, to local: SocketAddress) -> SocketAddress {
        SocketAddress(local.address, port: port(of: remote))
    }

    /// The address of this end behind a name.
    func address(of name: SocketAddress?) -> SocketAddress? {
        name.map { SocketAddress($0.address, port: port) }
    }

    /// Whether the name is that of another path than the one in use.
    func isNew(_ name: SocketAddress) -> Bool { name.port != current?.port }

    /// The library has moved to the path of that name. The ways before are no longer known, so that a client which comes
    /// back by one has to prove it again.
    mutating func moved(from remote: SocketAddress, to name: SocketAddress) {
        current = Place(remote: remote, port: name.port)
        others = []
    }

    /// The path in use leads nowhere any more: whatever comes next is a new one.
    mutating func forget() { current = nil }

    private mutating func port(of remote: SocketAddress) -> UInt16 {
        if let current, current.remote == remote { return current.port }
        if let other = others.first(where: { $0.remote == remote }) { return other.port }
        repeat { lastPort &+= 1 } while lastPort == 0 || isTaken(lastPort)
        if others.count == Self.mostOthers { others.removeFirst() }
        others.append(Place(remote: remote, port: lastPort))
        return lastPort
    }

    private func isTaken(_ port: UInt16) -> Bool {
        port == current?.port || others.contains { $0.port == port }
    }
}
