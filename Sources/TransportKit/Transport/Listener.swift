/// A bound address that hands out sockets.
///
/// One task may accept at a time; a second call while one waits throws ``Close/misuse(_:)``. A cancelled `accept`
/// throws ``Close/cancelled`` and loses no socket. Sockets live on when their listener closes.
public protocol Listener: AnyObject, Sendable {
    /// What it is bound to, with the port that the system chose where 0 was asked for.
    var endpoint: Endpoint { get }

    /// Waits for a socket whose peer has finished its handshake and named a target that has a route.
    func accept() async throws(Close) -> any Socket

    /// Stops answering, frees the address, and refuses what has not been accepted yet with the given code.
    func close(_ code: CloseCode, reason: String) async
}

extension Listener {
    /// Stops answering, with 1001.
    public func close() async {
        await close(.goingAway, reason: "the listener closed")
    }
}
