internal import TransportKit

/// Both ends of a path, as a value without I/O: `now` is handed in, and whoever must look again is collected for the
/// caller to wake.
///
/// Everything that travels has the instant at which it is due at the other end; ``settle(_:)`` makes what is due happen.
/// Each direction keeps its order.
struct PathState: Sendable {
    /// What travels beside the bytes of streams.
    enum Event: Sendable {
        case messages([Message])
        case stream(UInt64)
        case close(Close)
    }

    struct EndState: Sendable {
        let limits: Limits
        let idleTimeout: Duration
        var arriving: [(due: Instant, event: Event)] = []
        /// The bytes of messages on their way here or waiting for the application.
        var heldBytes = 0
        var messages: [Message] = []
        var streams: [UInt64] = []
        var closing: Close?
        var verdict: Close?
        var isReceiving = false
        var isAccepting = false
        let receiver = Signal()
        let acceptor = Signal()
        /// Whoever waits for room, for a stream, or for the end.
        var waiting: [Signal] = []
        var sentUnreliable = 0
        var openedStreams = 0
        var nextStream: UInt64

        init(limits: Limits, idleTimeout: Duration, firstStream: UInt64) {
            self.limits = limits
            self.idleTimeout = idleTimeout
            nextStream = firstStream
        }
    }

    private var ends: [EndState]
    var streams: [UInt64: StreamState] = [:]
    private var faults = MemoryFaults()
    /// Since when nothing gets through.
    private var silentSince: Instant?
    private var silenceEnd = Instant.zero
    private var hasVanished = false
    /// Whether the dialler's end has moved to another network.
    var hasMigrated = false
    private var woken: [Signal] = []
    /// When the state was last looked at.
    private var settled = Instant.zero

    init(dialer: (Limits, Duration), listener: (Limits, Duration)) {
        // The ends number their streams apart.
        ends = [
            EndState(limits: dialer.0, idleTimeout: dialer.1, firstStream: 1),
            EndState(limits: listener.0, idleTimeout: listener.1, firstStream: 2),
        ]
    }

    subscript(end: PathEnd) -> EndState {
        get { ends[end.rawValue] }
        _modify { yield &ends[end.rawValue] }
    }

    var hasEnded: Bool { ends.allSatisfy { $0.verdict != nil } }

    mutating func takeWoken() -> [Signal] {
        defer { woken = [] }
        return woken
    }

    mutating func wake(_ signal: Signal) { woken.append(signal) }

    mutating func wakeWaiting(_ end: PathEnd) {
        woken += self[end].waiting
        self[end].waiting = []
    }

    private mutating func wakeAll(_ end: PathEnd) {
        woken += [self[end].receiver, self[end].acceptor]
        wakeWaiting(end)
        for id in streams.keys { wakeStream(id, at: end) }
    }

    // MARK: - What travels

    /// When something that leaves now is due at the other end.
    func due(_ now: Instant) -> Instant { silentSince == nil ? now + faults.delay : .never }

    /// When the answer to a question of then is here, which an end does not ask its application; never while nothing gets
    /// through.
    func answer(toWhatWasAskedAt begun: Instant) -> Instant {
        guard silentSince == nil else { return .never }
        return max(begun, silenceEnd) + faults.delay * 2
    }

    /// When the next thing happens at an end by itself: something arrives, or the silence has lasted too long.
    func nextChange(at end: PathEnd) -> Instant {
        let idle = silentSince.map { $0 + self[end].idleTimeout } ?? .never
        return min(self[end].arriving.first?.due ?? .never, idle)
    }

    /// Makes everything happen that is due.
    mutating func settle(_ now: Instant) {
        settled = now
        for end in [PathEnd.dialer, .listener] {
            let count = self[end].arriving.prefix { $0.due <= now }.count
            let arrived = self[end].arriving.prefix(count)
            self[end].arriving.removeFirst(count)
            for (_, event) in arrived { arrive(event, at: end, now) }
            if let silentSince, self[end].verdict == nil, now >= silentSince + self[end].idleTimeout {
                let limit = self[end].idleTimeout
                self.end(end, with: .pathLost(TransportError(.idle, "the path was silent for \(limit.inWords)")))
            }
        }
    }

    private mutating func send(_ event: Event, to end: PathEnd, _ now: Instant) {
        if self[end].verdict != nil { return }
        let due = max(due(now), self[end].arriving.last?.due ?? .zero)
        self[end].arriving.append((due, event))
        // Whoever waits there learns when it is due.
        switch event {
        case .messages: wake(self[end].receiver)
        case .stream: wake(self[end].acceptor)
        case .close: wakeAll(end)
        }
        if due <= now { settle(now) }
    }

    private mutating func arrive(_ event: Event, at end: PathEnd, _ now: Instant) {
        guard self[end].verdict == nil else { return }
        switch event {
        case .messages(let messages):
            for message in messages {
                if message.payload.count > self[end].limits.maxMessageBytes {
                    return breakOff(.tooBig, "a message has \(message.payload.count) bytes", at: end, now)
                }
                if message.format == .text, String(validating: message.payload) == nil {
                    return breakOff(.badText, "a text is not UTF-8", at: end, now)
                }
                self[end].messages.append(message)
            }
            wake(self[end].receiver)
        case .stream(let id):
            self[end].streams.append(id)
            wake(self[end].acceptor)
        case .close(let close):
            self.end(end, with: close)
        }
    }

    /// Ends the path at once because the peer broke a rule.
    private mutating func breakOff(_ code: CloseCode, _ reason: String, at end: PathEnd, _ now: Instant) {
        let close = Close(code, reason: reason, origin: .local)
        beginClose(close, at: end, now)
        self.end(end, with: close)
    }

    // MARK: - Messages

    /// Why a batch cannot be sent at all, or nil.
    func refusal(of messages: [Message], capabilities: Capabilities, from end: PathEnd) -> Close? {
        let limit = self[end].limits.maxMessageBytes
        for message in messages {
            if message.payload.count > limit {
                return Close(
                    .tooBig, reason: "a message has \(message.payload.count) bytes, \(limit) are allowed",
                    origin: .local)
            }
            if message.format == .text, !capabilities.contains(.text) {
                return .misuse("this wire has no text messages")
            }
        }
        return nil
    }

    /// Whether an end may send: what is on its way and not taken stays under the peer's limit, one batch over at most.
    func hasRoom(from end: PathEnd) -> Bool {
        let far = self[end.other]
        return far.heldBytes < far.limits.receiveBufferBytes
    }

    mutating func push(_ messages: [Message], from end: PathEnd, _ now: Instant) {
        var kept: [Message] = []
        for message in messages {
            if message.delivery == .unreliable {
                let number = self[end].sentUnreliable
                self[end].sentUnreliable += 1
                if silentSince != nil || faults.losesUnreliable(number) { continue }
            }
            kept.append(message)
        }
        guard !kept.isEmpty else { return }
        // The peer has ended but its word is still on its way: nobody will take them.
        if self[end.other].verdict != nil { return }
        self[end.other].heldBytes += kept.reduce(0) { $0 + $1.payload.count }
        send(.messages(kept), to: end.other, now)
    }

    mutating func takeMessages(at end: PathEnd) -> [Message] {
        defer { self[end].messages = [] }
        self[end].heldBytes -= self[end].messages.reduce(0) { $0 + $1.payload.count }
        wakeWaiting(end.other)
        return self[end].messages
    }

    // MARK: - Streams

    mutating func openStream(from end: PathEnd, _ now: Instant) -> UInt64 {
        let id = self[end].nextStream
        self[end].nextStream += 2
        self[end].openedStreams += 1
        streams[id] = StreamState(opener: end)
        send(.stream(id), to: end.other, now)
        return id
    }

    // MARK: - The end

    /// Sends a close to the other end; this end goes on until ``end(_:with:)``.
    mutating func beginClose(_ close: Close, at end: PathEnd, _ now: Instant) {
        self[end].closing = close
        // Codes that only say what one end saw never travel (R120).
        let code = close.code.isSynthetic ? CloseCode.noneGiven : close.code
        let reason = close.code.isSynthetic ? "" : close.wireReason
        send(.close(Close(code, reason: reason, origin: .remote)), to: end.other, now)
        wakeAll(end)
    }

    /// The last word at an end; only the first counts.
    mutating func end(_ end: PathEnd, with close: Close) {
        guard self[end].verdict == nil else { return }
        self[end].verdict = close
        self[end].arriving = []
        for id in streams.keys { streams[id]?[end].dropWhatIsDue(after: settled) }
        // The peer need not wait for room, or for what was on its way, any more.
        wakeWaiting(end.other)
        wakeAll(end)
    }

    // MARK: - Faults

    mutating func apply(_ faults: MemoryFaults, _ now: Instant) {
        self.faults = faults
        if faults.isSilent { return fallSilent(now) }
        guard !hasVanished, silentSince != nil else { return }
        silentSince = nil
        silenceEnd = now
        for end in [PathEnd.dialer, .listener] {
            for index in self[end].arriving.indices where self[end].arriving[index].due == .never {
                self[end].arriving[index].due = due(now)
            }
            wakeAll(end)
        }
        let due = due(now)
        for id in streams.keys { streams[id]?.release(at: due) }
    }

    mutating func vanish(_ now: Instant) {
        hasVanished = true
        fallSilent(now)
    }

    private mutating func fallSilent(_ now: Instant) {
        guard silentSince == nil else { return }
        silentSince = now
        // Whoever waits must learn that an idle limit now runs.
        wakeAll(.dialer)
        wakeAll(.listener)
    }

    mutating func cut() {
        for end in [PathEnd.dialer, .listener] {
            self.end(end, with: .pathLost(TransportError(.pathReset, "the path was cut")))
        }
    }
}
