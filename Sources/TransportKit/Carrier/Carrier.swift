/// A way to reach one peer, across however many sockets that takes.
///
/// A carrier opens sessions; each session is a ``Socket``. Carriers compose: one is built over another, or over a
/// dialer, and never names a transport. Making one opens nothing.
///
/// Any task may call it. Cancelling a waiting `open` gives up that attempt and leaves the carrier usable. Whether more
/// than one session may be open at once is the carrier's own affair; a second `open` on one that has room for one ends
/// the first session with 4409.
public protocol Carrier: AnyObject, Sendable {
    /// What its sessions can do at best.
    var capabilities: Capabilities { get }

    /// The least protection that a session of it can have.
    var protection: Protection { get }

    /// Opens a new session; nothing is left of the last one.
    ///
    /// - Parameter firstFlight: the first message, sent as early as the layers below can.
    func open(firstFlight: Bytes?) async throws(Close) -> any Socket

    /// Its state: the latest value first, then every change.
    var states: CarrierStates { get }

    /// The network is back or has changed: do not wait any longer, and do not trust what stood before.
    func wake() async

    /// Ends the carrier and its sessions. Closing twice is harmless; `open` throws from now on.
    func close(_ code: CloseCode, reason: String) async
}

extension Carrier {
    /// Opens a new session.
    public func open() async throws(Close) -> any Socket {
        try await open(firstFlight: nil)
    }

    /// Ends the carrier with 1000.
    public func close() async {
        await close(.normal, reason: "")
    }
}
