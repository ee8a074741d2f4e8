internal import TransportKit

/// What the listening end tells the library of where its client's packets come from.
///
/// That is the truth but in one case. ngtcp2 0.12 takes a client for a new path, with the id it had, when a NAT makes
/// another port of the old one; if the client then comes from a third address with a new id, before the second has
/// answered, the library retires the old id twice: it blames the client for one id too many, or fails an assertion. That
/// happens whenever a machine's route changes a moment before its connections move. So the third address takes the
/// second one's name: the challenge that is out goes there, and only an answer from there proves it.
struct PeerAddress {
    /// How long after its proof a path may be tried for its packet size; then nothing of it is left.
    private static let settling = Duration.seconds(3)

    private enum Change {
        /// The path in use is proven, and nothing of the one before is left.
        case none
        /// The client is at another address under the id it had, and the challenge to it is out.
        case challenged
        /// It has answered.
        case settling(until: Instant)
    }

    /// The address as the library knows it, and the id that the client used there.
    private var known: SocketAddress
    private var id: ConnectionID?
    private var change = Change.none
    /// Where the client really is that the library knows at `known`.
    private var real: SocketAddress?

    init(_ remote: SocketAddress) { known = remote }

    /// The name under which a packet is handed to the library; nil where it has to be dropped.
    mutating func name(of remote: SocketAddress, id: ConnectionID?, now: Instant) -> SocketAddress? {
        if remote == real { return known }
        // Late, from where the client is not any more.
        if remote == known { return real == nil ? remote : nil }
        guard let id, let known = self.id, id != known else { return remote }
        switch change {
        case .none: return remote
        case .challenged:
            real = remote
            return self.known
        case .settling(let until): return now < until ? nil : remote
        }
    }

    /// Where a packet goes that the library sends to `remote`.
    func destination(of remote: SocketAddress?) -> SocketAddress? {
        remote == known ? real ?? remote : remote
    }

    /// The library took a packet with that id from what it knows as `name`, and says where the client is now.
    mutating func took(id: ConnectionID?, from name: SocketAddress, current: SocketAddress) {
        guard current != known else {
            // A packet that only tries a path says nothing about the one in use.
            if let id, name == current { self.id = id }
            return
        }
        known = current
        real = nil
        change = id == self.id ? .challenged : .none
        self.id = id
    }

    /// The path in use has been tried.
    mutating func tried(isSound: Bool, current: SocketAddress, now: Instant) {
        if current != known {
            known = current
            real = nil
        }
        switch change {
        case .challenged where isSound: change = .settling(until: now + Self.settling)
        case .challenged, .none, .settling: change = .none
        }
    }
}
