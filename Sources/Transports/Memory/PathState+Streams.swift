internal import TransportKit

/// One stream of a path.
struct StreamState: Sendable {
    /// One direction, named after the end that reads it.
    struct Half: Sendable {
        var chunks: [(due: Instant, bytes: Bytes)] = []
        var bytes = 0
        /// When the end of the bytes is due; nil while the writer may still write.
        var finish: Instant?
        /// Whether the reader has seen the end, or will never look.
        var isDone = false
        var isReading = false
        var isWriting = false
        let reader = Signal()
        let writer = Signal()

        /// The path has ended, so that what is under way never arrives.
        mutating func dropWhatIsDue(after now: Instant) {
            chunks.removeAll { $0.due > now }
            if let finish, finish > now { self.finish = nil }
        }
    }

    let opener: PathEnd
    private var halves = [Half(), Half()]
    /// What each end sees of a reset, and from when on.
    var resets: [(code: UInt64, due: Instant)?] = [nil, nil]
    var isReleased = [false, false]
    /// Whether it no longer counts against the limit of its opener.
    var isOver = false

    init(opener: PathEnd) {
        self.opener = opener
    }

    /// The direction that `end` reads.
    subscript(end: PathEnd) -> Half {
        get { halves[end.rawValue] }
        _modify { yield &halves[end.rawValue] }
    }

    func reset(at end: PathEnd, _ now: Instant) -> UInt64? {
        guard let reset = resets[end.rawValue], reset.due <= now else { return nil }
        return reset.code
    }

    /// Gives everything that was held back by a silence the instant at which it is due after all.
    mutating func release(at due: Instant) {
        for end in [PathEnd.dialer, .listener] {
            for index in self[end].chunks.indices where self[end].chunks[index].due == .never {
                self[end].chunks[index].due = due
            }
            if self[end].finish == .never { self[end].finish = due }
            if resets[end.rawValue]?.due == .never { resets[end.rawValue]?.due = due }
        }
    }
}

/// What a read found.
enum StreamRead: Sendable {
    case bytes(Bytes)
    case finished
    case failed(StreamError)
}

extension PathState {
    mutating func wakeStream(_ id: UInt64, at end: PathEnd) {
        guard let stream = streams[id] else { return }
        wake(stream[end].reader)
        wake(stream[end.other].writer)
    }

    func read(_ id: UInt64, at end: PathEnd, upTo limit: Int, _ now: Instant) -> Step<StreamRead> {
        guard let stream = streams[id] else { return .done(.failed(.misuse("the stream is gone"))) }
        let half = stream[end]
        // The end stays the end, whatever happens afterwards (R192).
        if half.isDone { return .done(.finished) }
        if let code = stream.reset(at: end, now) { return .done(.failed(.reset(code))) }
        if let first = half.chunks.first, first.due <= now { return .done(.bytes(first.bytes.prefix(limit))) }
        if half.chunks.isEmpty, let finish = half.finish, finish <= now { return .done(.finished) }
        if let close = self[end].verdict ?? self[end].closing { return .done(.failed(.socketClosed(close))) }
        let next = [half.chunks.first?.due, half.finish, stream.resets[end.rawValue]?.due].compactMap(\.self).min()
        return .wait(until: min(next ?? .never, nextChange(at: end)))
    }

    /// Takes what ``read(_:at:upTo:_:)`` found off the stream.
    mutating func consume(_ found: StreamRead, of id: UInt64, at end: PathEnd) {
        switch found {
        case .bytes(let bytes):
            streams[id]?[end].bytes -= bytes.count
            streams[id]?[end].chunks[0].bytes.removeFirst(bytes.count)
            if streams[id]?[end].chunks[0].bytes.isEmpty == true { streams[id]?[end].chunks.removeFirst() }
            if let writer = streams[id]?[end].writer { wake(writer) }
        case .finished:
            streams[id]?[end].isDone = true
            settleStream(id)
        case .failed:
            break
        }
    }

    /// Why nothing can be written, or nil.
    func writeRefusal(_ id: UInt64, from end: PathEnd, _ now: Instant) -> StreamError? {
        guard let stream = streams[id] else { return .misuse("the stream is gone") }
        if let code = stream.reset(at: end, now) { return .reset(code) }
        if let close = self[end].verdict ?? self[end].closing { return .socketClosed(close) }
        return stream[end.other].finish == nil ? nil : .finished
    }

    /// Writes as much of `bytes` as the window has room for, and takes it off them.
    mutating func write(_ bytes: inout Bytes, to id: UInt64, from end: PathEnd, _ now: Instant) {
        guard let held = streams[id]?[end.other].bytes else { return }
        let room = max(self[end.other].limits.streamWindowBytes - held, 0)
        guard room > 0, !bytes.isEmpty else { return }
        let part = bytes.takeFirst(min(room, bytes.count))
        let due = max(due(now), streams[id]?[end.other].chunks.last?.due ?? .zero)
        streams[id]?[end.other].bytes += part.count
        streams[id]?[end.other].chunks.append((due, part))
        if let reader = streams[id]?[end.other].reader { wake(reader) }
    }

    mutating func finish(_ id: UInt64, from end: PathEnd, _ now: Instant) {
        let due = max(due(now), streams[id]?[end.other].chunks.last?.due ?? .zero)
        streams[id]?[end.other].finish = due
        if let reader = streams[id]?[end.other].reader { wake(reader) }
    }

    /// Aborts both directions; an end that already has seen its own end is left with it.
    mutating func reset(_ id: UInt64, code: UInt64, from end: PathEnd, _ now: Instant) {
        guard var stream = streams[id], !stream.isOver else { return }
        for side in [end, end.other] where stream.resets[side.rawValue] == nil {
            stream.resets[side.rawValue] = (code, side == end ? now : due(now))
            stream[side].chunks = []
            stream[side].bytes = 0
        }
        streams[id] = stream
        for side in [end, end.other] { wakeStream(id, at: side) }
        settleStream(id)
    }

    /// Nobody holds the end's handle any more: what it has finished still arrives, what it has not is reset.
    mutating func release(_ id: UInt64, at end: PathEnd, _ now: Instant) {
        guard let stream = streams[id] else { return }
        if stream[end.other].finish == nil {
            reset(id, code: 0, from: end, now)
        } else {
            streams[id]?[end].isDone = true
            streams[id]?[end].chunks = []
        }
        streams[id]?.isReleased[end.rawValue] = true
        settleStream(id)
        if streams[id]?.isReleased == [true, true] { streams[id] = nil }
    }

    /// A stream that is over makes room for another one.
    private mutating func settleStream(_ id: UInt64) {
        guard let stream = streams[id], !stream.isOver else { return }
        let isReset = stream.resets.contains { $0 != nil }
        guard isReset || (stream[.dialer].isDone && stream[.listener].isDone) else { return }
        streams[id]?.isOver = true
        self[stream.opener].openedStreams -= 1
        wakeWaiting(stream.opener)
    }
}
