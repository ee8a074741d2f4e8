internal import TransportKit

/// What a socket says, as signals for the tasks of a connection.
///
/// Sendable is sound: `failure` is touched on the loop alone.
final class TCPEvents: TCPSocketHandler, @unchecked Sendable {
    /// The attempt to connect has ended, well or with `failure`.
    let opened = Signal()
    /// There is something to read.
    let bytes = Signal()
    /// There is room to write.
    let room = Signal()
    private(set) var failure: TransportError?

    func connected() { opened.signal() }

    func readable() { bytes.signal() }

    func writable() { room.signal() }

    func failed(_ error: TransportError) {
        failure = error
        opened.signal()
    }
}
