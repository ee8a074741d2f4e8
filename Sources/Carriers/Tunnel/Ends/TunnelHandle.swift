internal import TransportKit

/// What a connection knows of one socket of a session, beside what its machine does. Confined to the connection.
final class TunnelHandle {
    /// A `send` that waits for room.
    struct Sender {
        let signal: Signal
        let control: UInt64
        let bulk: UInt64
    }

    let id: UInt64
    var address: TunnelAddress
    /// Whether the first message has been sent.
    var hasBegun: Bool
    /// Whether the other end has said anything.
    var isAnswered = false
    let received = Signal()
    var isReceiving = false
    var senders: [Sender] = []
    /// What had arrived when it ended.
    var rest: [Message] = []
    /// How it ended, and as what it is being closed.
    var close: Close?
    var closing: Close?
    var closers: [Signal] = []

    init(id: UInt64, address: TunnelAddress, hasBegun: Bool) {
        self.id = id
        self.address = address
        self.hasBegun = hasBegun
    }

    /// How every call ends from now on.
    var end: Close? { close ?? closing }

    func wakeEverybody() {
        received.signal()
        for sender in senders { sender.signal.signal() }
        for signal in closers { signal.signal() }
    }
}
