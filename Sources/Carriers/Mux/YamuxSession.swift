internal import TransportKit

/// One end of a yamux session: bytes in, bytes out, no I/O and no clock.
///
/// Feed it what arrived (``receive(_:)``), take what happened (``takeEvents()``) and what to send
/// (``takeOutput(upTo:)``). The streams 1 and 3, the *lanes*, carry messages and are always there; the dialer opens
/// them. All other streams are the application's.
struct YamuxSession: Sendable {
    /// What the owner must know about.
    enum Event: Equatable, Sendable {
        /// The peer opened a stream.
        case opened(UInt32)
        /// Bytes, or the end, can be read.
        case readable(UInt32)
        /// The queue of what was written has become shorter.
        case writable(UInt32)
        /// The peer reset a stream.
        case reset(UInt32)
        /// Another stream may be opened now.
        case mayOpen
        /// The peer opens nothing more and takes no more streams.
        case goingAway
        /// An answer to a ping.
        case pong(UInt32)
    }

    struct Settings: Sendable {
        var isDialer: Bool
        /// How far the window of a stream of the application may grow, in bytes.
        var streamWindow = 1 << 20
        /// How far the window of a lane may grow, in bytes.
        var laneWindow = 4 << 20
        /// How many streams the peer may have open at once.
        var maxStreams = 1024
    }

    enum Lane {
        static let control: UInt32 = 1
        static let bulk: UInt32 = 3
    }

    /// The upper half of the value of the first ping, whose lower half says how many streams its sender lets in.
    static let limitMark: UInt32 = 0x544b_0000
    /// The longest data in one frame of a stream while others wait for their turn.
    static let frameLimit = 16_384
    /// How many bytes of answers may wait for a peer that does not take them.
    static let urgentLimit = 65_536

    let settings: Settings
    var streams: [UInt32: YamuxStreamState] = [:]
    var events: [Event] = []

    // Input.
    var partialHeader = Bytes()
    var body: Body?
    var hasSeenFrame = false
    var lastPeerStream: UInt32 = 0
    var peerOpenCount = 0

    // Output.
    var urgent = Bytes()
    var updates = Fifo<UInt32>()
    var ready = Fifo<UInt32>()
    var queuedBytes = 0

    // Opening.
    private var nextStream: UInt32
    /// Every lower number of this end was given.
    var firstUnopened: UInt32 { nextStream }
    private var ownOpenCount = 0
    /// How many streams the peer lets in; nil until it is known.
    var peerLimit: Int?
    var isPeerGoingAway = false
    private var hasGoneAway = false

    /// The frame whose data is arriving.
    struct Body: Sendable {
        var stream: UInt32
        var left: Int
        var hasEnd: Bool
        /// Nobody wants the data: the stream is gone.
        var isIgnored: Bool
    }

    init(_ settings: Settings) {
        self.settings = settings
        nextStream = settings.isDialer ? 5 : 2
        let limit = UInt32(clamping: min(max(settings.maxStreams, 0), 0xffff))
        YamuxHeader(kind: .ping, flags: .syn, stream: 0, length: Self.limitMark | limit).append(to: &urgent)
        for lane in [Lane.control, Lane.bulk] {
            streams[lane] = YamuxStreamState()
            streams[lane]?.isOpen = false
            if settings.isDialer {
                streams[lane]?.flagsDue = .syn
                makeUpdateDue(lane)
            } else {
                streams[lane]?.isEstablished = false
            }
        }
    }

    func isLane(_ id: UInt32) -> Bool { id == Lane.control || id == Lane.bulk }

    /// Whether this end numbers the stream.
    func isOwn(_ id: UInt32) -> Bool { (id % 2 == 1) == settings.isDialer }

    mutating func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events = [] }
        return events
    }

    // MARK: - What the application does

    /// Whether another stream may be opened.
    var mayOpen: Bool {
        guard let peerLimit, !isPeerGoingAway, !hasGoneAway, nextStream < .max - 1 else { return false }
        return ownOpenCount < peerLimit
    }

    /// Opens a stream; ``mayOpen`` must hold.
    mutating func open() -> UInt32 {
        precondition(mayOpen, "the peer lets in no more streams")
        let id = nextStream
        nextStream += 2
        ownOpenCount += 1
        var state = YamuxStreamState()
        state.flagsDue = .syn
        streams[id] = state
        makeUpdateDue(id)
        return id
    }

    /// How many written bytes of a stream wait to go out.
    func queued(_ id: UInt32) -> Int { streams[id]?.queue.count ?? 0 }

    /// Queues bytes to send; those of a stream that is over are dropped.
    mutating func write(_ bytes: Bytes, to id: UInt32) {
        guard let state = streams[id], !state.wasReset, !state.wantsEnd else { return }
        streams[id]?.queue.append(bytes)
        queuedBytes += bytes.count
        makeReady(id)
    }

    /// Ends this end's direction after what was written.
    mutating func finish(_ id: UInt32) {
        guard let state = streams[id], !state.wasReset, !state.wantsEnd else { return }
        streams[id]?.wantsEnd = true
        makeReady(id)
    }

    /// Aborts a stream.
    mutating func reset(_ id: UInt32) {
        guard let state = streams[id], !state.isOver else { return }
        if !state.flagsDue.contains(.syn) {
            YamuxHeader(kind: .windowUpdate, flags: .rst, stream: id, length: 0).append(to: &urgent)
        }
        // Whoever resets reads nothing more, not even what was complete.
        streams[id]?.hasReceivedEnd = false
        drop(id)
    }

    /// Takes bytes that arrived; nil where there are none yet, or no more.
    mutating func read(_ id: UInt32, upTo limit: Int) -> Bytes? {
        guard let bytes = streams[id]?.received.takeFirst(upTo: limit) else { return nil }
        giveBack(bytes.count, to: id)
        return bytes
    }

    /// The application has dropped its hold on a stream.
    mutating func release(_ id: UInt32) {
        guard let state = streams[id] else { return }
        streams[id]?.isHeld = false
        if !state.isOver, !state.wantsEnd {
            reset(id)
        } else {
            streams[id]?.isAbandoned = true
            while read(id, upTo: .max) != nil {}
        }
        settle(id)
    }

    mutating func ping(_ value: UInt32) {
        YamuxHeader(kind: .ping, flags: .syn, stream: 0, length: value).append(to: &urgent)
    }

    mutating func goAway(_ code: YamuxGoAway) {
        guard !hasGoneAway else { return }
        hasGoneAway = true
        YamuxHeader(kind: .goAway, stream: 0, length: code.rawValue).append(to: &urgent)
    }

    // MARK: - Shared by input and output

    /// Counts bytes as read and gives them back once half of the window is used up (B44), in a window that has grown.
    mutating func giveBack(_ count: Int, to id: UInt32) {
        guard let state = streams[id], !state.hasReceivedEnd, !state.wasReset else { return }
        streams[id]?.unreturned = state.unreturned + count
        if (state.unreturned + count) * 2 >= state.window { makeUpdateDue(id) }
    }

    mutating func makeUpdateDue(_ id: UInt32) {
        guard streams[id]?.isUpdateDue == false else { return }
        streams[id]?.isUpdateDue = true
        updates.append(id)
    }

    mutating func makeReady(_ id: UInt32) {
        guard let state = streams[id], state.canSend, !state.isReady else { return }
        streams[id]?.isReady = true
        if !isLane(id) { ready.append(id) }
    }

    /// A stream is gone in both directions.
    mutating func drop(_ id: UInt32) {
        guard var state = streams.removeValue(forKey: id) else { return }
        queuedBytes -= state.queue.count
        state.queue.removeAll()
        // What came before the peer's end stays readable: that direction was complete.
        if !state.hasReceivedEnd { state.received.removeAll() }
        state.wasReset = true
        state.flagsDue = []
        streams[id] = state
        settle(id)
    }

    /// Takes a stream out of the count, and then out of the table, when it is over.
    mutating func settle(_ id: UInt32) {
        guard let state = streams[id], state.isOver else { return }
        if state.isOpen {
            streams[id]?.isOpen = false
            if isOwn(id) {
                ownOpenCount -= 1
                if mayOpen { events.append(.mayOpen) }
            } else {
                peerOpenCount -= 1
            }
        }
        if !state.isHeld { streams[id] = nil }
    }
}
