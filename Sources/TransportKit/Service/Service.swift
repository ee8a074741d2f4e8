/// What answers on a listener's route.
///
/// The host calls `serve` once for every socket that a peer opened on the route, each in a task of its own on the
/// socket's loop, any number at once. The socket belongs to the service until it returns; the host closes it then, with
/// 1000 where the service has not closed it itself. Cancelling the task means: stop now. A service never throws: what
/// goes wrong on a socket ends that socket with a code.
public protocol Service: Sendable {
    /// What it needs of a socket. A route on a listener that cannot give it is refused when the host is built.
    var requires: Capabilities { get }

    /// Whether it may be given an ``EarlySocket`` before the handshake is done, on a listener that takes early data.
    var answersEarly: Bool { get }

    /// Whether it answers on every path below its route, too.
    var servesPathsBelow: Bool { get }

    /// Whether who its peers are, and what they ask for, must not be logged.
    var keepsPeersPrivate: Bool { get }

    /// Talks to one peer until either end closes.
    func serve(_ socket: any Socket, target: Target) async
}

extension Service {
    /// Messages are enough.
    public var requires: Capabilities { [] }

    /// What came early may be a recording, so a service has to ask for it.
    public var answersEarly: Bool { false }

    /// Its route is all that it answers on.
    public var servesPathsBelow: Bool { false }

    /// Its peers may be logged.
    public var keepsPeersPrivate: Bool { false }
}
