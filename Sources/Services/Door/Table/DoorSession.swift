internal import TransportKit
internal import TunnelCarrier

/// One session between a client and a box, as the door sees it: two queues, two credits, and who is still there.
final class DoorSession {
    enum Phase: Equatable {
        /// The box has not answered.
        case begun(until: Instant)
        case carrying
        /// One end has ended it; what it had sent goes to the other, and then the end.
        case ending(until: Instant)
        case ended
    }

    /// The name of its two queues. No other session ever has it.
    let serial: UInt64
    let key: SessionKey
    /// The two ends, as long as they take part.
    var client: ClientLink?
    var box: BoxLink?
    var phase: Phase
    /// What the client may send, and what the box may.
    var fromClient: ReceiveCredit
    var fromBox: ReceiveCredit

    init(serial: UInt64, key: SessionKey, client: ClientLink, box: BoxLink, window: UInt32, until: Instant) {
        self.serial = serial
        self.key = key
        self.client = client
        self.box = box
        phase = .begun(until: until)
        fromClient = ReceiveCredit(window: window)
        fromBox = ReceiveCredit(window: window)
    }

    /// Whether both ends take part.
    var isLive: Bool {
        switch phase {
        case .begun, .carrying: true
        case .ending, .ended: false
        }
    }

    /// When it ends where nothing happens.
    var deadline: Instant? {
        switch phase {
        case .begun(let until), .ending(let until): until
        case .carrying, .ended: nil
        }
    }
}
