internal import TransportKit

/// What one session sends in one direction, at a hop that sends it: what waits, and what may go now.
///
/// Control goes before what is unreliable, and that before bulk; but no frame is passed by more than 256 others, since the
/// session inside accepts no more. Reliable frames wait for credit and are never dropped; unreliable ones cost none, and are
/// dropped where too many wait.
package struct SendLane: Sendable {
    /// How many unreliable frames may wait.
    package static let unreliableFrames = 64
    /// How many bytes of them may wait, beside the last.
    package static let unreliableBytes = 65_536

    private enum Phase {
        case open
        /// The end goes once the rest has.
        case finishing
        case ended
    }

    private enum Choice {
        case control
        case unreliable
        case bulk
        case end
    }

    private let device: DeviceID?
    private let session: TunnelSessionID
    private let window: UInt64
    private var granted: UInt64
    private var spent: UInt64 = 0
    private var control = FrameQueue()
    private var bulk = FrameQueue()
    private var unreliable = FrameQueue()
    private var phase = Phase.open
    /// How many unreliable frames were dropped because too many waited.
    package private(set) var dropped = 0
    /// What waits: the bytes of each frame and 64 more.
    package private(set) var waitingCost: UInt64 = 0

    /// How much of that is bulk.
    package var waitingBulkCost: UInt64 { UInt64(bulk.bytes + bulk.count * DoorLimits.frameCost) }

    /// Begins a session.
    ///
    /// - Parameters:
    ///   - device: what its end is addressed with on the box's leg; on the client's, nil.
    ///   - session: what its end is addressed with.
    ///   - window: the credit it begins with, as the receiver said in its handshake.
    package init(device: DeviceID? = nil, session: TunnelSessionID, window: UInt32) {
        self.device = device
        self.session = session
        self.window = UInt64(window)
        granted = UInt64(window)
    }

    /// Whether ``next()`` gives something.
    package var isReady: Bool { choice != nil }

    /// Whether the end has gone.
    package var isEnded: Bool { phase == .ended }

    /// Whether a frame has gone, so that the other end may know the session.
    package private(set) var hasSent = false

    /// A frame has gone without having waited here: `begin` inside of message 1.
    package mutating func sent(_ frame: TunnelFrame) {
        spent += frame.cost
        hasSent = true
    }

    /// Takes a frame to wait for its turn. What comes after ``finish()`` is dropped.
    ///
    /// - Returns: false where it is unreliable and was dropped because too many wait.
    @discardableResult
    package mutating func put(_ frame: TunnelFrame) -> Bool {
        guard phase == .open else { return true }
        let marks: FrameQueue.Marks = [control.put, unreliable.put, bulk.put]
        switch frame.kind {
        case .begin, .control:
            if frame.isEnd {
                finish()
                return true
            }
            control.append(frame, marks)
        case .bulk:
            bulk.append(frame, marks)
        case .unreliable:
            guard unreliable.count < Self.unreliableFrames, unreliable.bytes < Self.unreliableBytes else {
                dropped += 1
                return false
            }
            unreliable.append(frame, marks)
        }
        waitingCost += Self.weight(of: frame)
        return true
    }

    /// The other end may have been sent `total` since the session began; a total that is not higher is ignored.
    package mutating func credit(_ total: UInt64) {
        granted = max(granted, total)
    }

    /// Sends the end once the rest has gone.
    package mutating func finish() {
        if phase == .open { phase = .finishing }
    }

    /// Drops what waits; the end is next.
    package mutating func abandon() {
        control.removeAll()
        bulk.removeAll()
        unreliable.removeAll()
        waitingCost = 0
        finish()
    }

    /// Takes the frame that goes now; nil where none may.
    package mutating func next() -> TunnelFrame? {
        guard let choice else { return nil }
        hasSent = true
        let taken: TunnelFrame?
        switch choice {
        case .control: taken = control.popFirst()
        case .unreliable: taken = unreliable.popFirst()
        case .bulk: taken = bulk.popFirst()
        case .end:
            phase = .ended
            return .end(device: device, session: session)
        }
        if let taken {
            spent += taken.cost
            waitingCost -= Self.weight(of: taken)
        }
        return taken
    }

    // MARK: - What goes now

    private var choice: Choice? {
        switch phase {
        case .open, .finishing: break
        case .ended: return nil
        }
        var isControlHeldBack = true
        if let head = control.first {
            isControlHeldBack = !mayPass(.control, bulk, unreliable)
            if !isControlHeldBack, head.cost <= granted - spent { return .control }
        }
        if unreliable.first != nil, mayPass(.unreliable, control, bulk) { return .unreliable }
        // An eighth of the window stays free of bulk, so that there is room for control however much of it waits.
        if let head = bulk.first, isControlHeldBack, head.cost + window / 8 <= granted - spent,
            mayPass(.bulk, control, unreliable)
        {
            return .bulk
        }
        guard phase == .finishing, control.isEmpty, bulk.isEmpty, unreliable.isEmpty else { return nil }
        return .end
    }

    /// Whether the first frame of a queue may go before the first ones of the two others. Those behind them were put later,
    /// and have been passed by no more.
    private func mayPass(_ queue: FrameQueue.Name, _ one: FrameQueue, _ other: FrameQueue) -> Bool {
        let gone: FrameQueue.Marks = [control.gone, unreliable.gone, bulk.gone]
        return one.letsPass(queue, gone) && other.letsPass(queue, gone)
    }

    private static func weight(of frame: TunnelFrame) -> UInt64 {
        UInt64(frame.payload.count + DoorLimits.frameCost)
    }
}
