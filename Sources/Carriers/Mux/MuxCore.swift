internal import TransportKit

/// Drives a ``YamuxSession`` over a socket: one task reads, one writes while there is something to write, and everybody else
/// waits for signals.
actor MuxCore {
    // A datagram of this size fits any path (QUIC needs 1,200 bytes of it). A larger one might come back from the
    // socket below as a reliable message, and those are bytes of yamux.
    static let datagramLimit = 1100
    static let datagramQueueLimit = 256
    static let receiveBudget = 1 << 20

    nonisolated let info: SocketInfo
    private nonisolated let mail = MuxCoreMail()
    private nonisolated let executor: any SerialExecutor & TaskExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    let inner: any Socket
    let limits: Limits
    private let time: any TimeSource
    var session: YamuxSession
    private var control: MessageLane
    private var bulk: MessageLane
    private var datagramsIn: [Message] = []
    var datagramsOut: [Message] = []

    // Who waits.
    private let received = Signal()
    private let accepted = Signal()
    private var isReceiving = false
    private var isAccepting = false
    var senders: [WaitingSender] = []
    private var openers: [Signal] = []
    private var closers: [Signal] = []
    private var waiters: [UInt32: StreamWaiters] = [:]
    private var arrivedStreams = Fifo<UInt32>()

    // The end.
    private(set) var ended: Close?
    private(set) var closing: Close?
    private var isLingerOver = false
    /// Whether a task writes, or nothing can be written any more.
    private var isWriting = false
    private var isSending = false
    private let flushed = Signal()

    init(
        inner: any Socket, session: YamuxSession, limits: Limits, executor: any SerialExecutor & TaskExecutor,
        time: any TimeSource
    ) {
        self.inner = inner
        self.session = session
        self.limits = limits
        self.executor = executor
        self.time = time
        var info = inner.info
        info.capabilities.insert(.streams)
        info.capabilities.remove(.text)
        info.maxMessageBytes = limits.maxMessageBytes
        self.info = info
        control = MessageLane(stream: YamuxSession.Lane.control, delivery: .control, limit: limits.maxMessageBytes)
        bulk = MessageLane(stream: YamuxSession.Lane.bulk, delivery: .bulk, limit: limits.maxMessageBytes)
    }

    /// Starts to read and write. The reader holds this object until the socket has ended; its handle sees to that. All the
    /// tasks of this object end by themselves: the reader and the writer with the socket below, the one that closes in time.
    func start() {
        Task(executorPreference: executor) { await self.readInput() }
        kick()
    }

    // MARK: - Input and output

    private func readInput() async {
        while true {
            let batch: [Message]
            do throws(Close) {
                batch = try await inner.receive()
            } catch {
                // Our own close ends with what `inner.close` says, which may be the peer's word.
                if closing == nil || error.origin != .local { end(error) }
                return
            }
            do throws(YamuxError) {
                for message in batch {
                    if message.delivery == .unreliable {
                        if datagramsIn.count < Self.datagramQueueLimit {
                            datagramsIn.append(message)
                            received.signal()
                        }
                    } else {
                        try session.receive(message.payload)
                    }
                }
                react()
            } catch {
                react()
                beginClose(Close(.protocolError, reason: "\(error)", origin: .local), flush: false)
            }
            kick()
        }
    }

    private func writeOutput() async {
        // Four whole frames: few messages below, and control never behind more than that.
        let limit = min(4 * (YamuxSession.frameLimit + YamuxHeader.size), max(inner.info.maxMessageBytes / 2, 1))
        while ended == nil {
            guard session.hasOutput || !datagramsOut.isEmpty else {
                isWriting = false
                flushed.signal()
                return
            }
            var batch = datagramsOut
            datagramsOut = []
            var output = session.takeOutput(upTo: limit)
            react()
            while !output.isEmpty { batch.append(Message(output.takeFirst(min(output.count, 2 * limit)))) }
            isSending = true
            let isOpen: Bool
            do throws(Close) {
                try await inner.send(batch)
                isOpen = true
            } catch {
                isOpen = false
            }
            isSending = false
            // Whoever reads finds out how it ended, once it has read what came before.
            guard isOpen else { return }
        }
    }

    /// Nobody holds the stream any more. Called from any thread.
    nonisolated func release(_ id: UInt32) {
        if mail.release(id) { absorbMail() }
    }

    /// Nobody holds the socket any more. Called from any thread.
    nonisolated func drop() {
        if mail.drop() { absorbMail() }
    }

    private nonisolated func absorbMail() {
        Task(executorPreference: executor) { await self.absorb() }
    }

    /// Takes in what other threads have left.
    private func absorb() {
        let (released, isDropped) = mail.take()
        for id in released {
            waiters[id] = nil
            session.release(id)
        }
        if isDropped {
            beginClose(Close(.goingAway, reason: "nobody holds the socket any more", origin: .local), flush: true)
        }
        react()
        kick()
    }

    /// Has a task write where there is something to write. It ends with its work: a quiet session does not pay for it.
    func kick() {
        guard session.hasOutput || !datagramsOut.isEmpty, !isWriting, ended == nil else { return }
        isWriting = true
        Task(executorPreference: executor) { await self.writeOutput() }
    }

    /// Wakes whoever the events of the session concern.
    private func react() {
        for event in session.takeEvents() {
            switch event {
            case .opened(let id):
                arrivedStreams.append(id)
                accepted.signal()
            case .readable(let id):
                if session.isLane(id) { laneReadable() } else { waiters[id]?.readable.signal() }
            case .writable(let id):
                if session.isLane(id) { wakeSenders() } else { waiters[id]?.writable.signal() }
            case .reset(let id):
                if let waiting = waiters[id] {
                    waiting.readable.signal()
                    waiting.writable.signal()
                } else {
                    // Nobody has accepted it, and now nobody will.
                    arrivedStreams.removeAll { $0 == id }
                    session.release(id)
                }
            case .mayOpen:
                openers.first?.signal()
            case .goingAway, .pong:
                break
            }
        }
    }

    private func laneReadable() {
        withLanes { (session, control, bulk) throws(LengthPrefixedMessages.TooLong) in
            // Both are asked, so that each takes in the message it is in the middle of.
            let hasControl = try control.hasMessage(in: &session)
            if try bulk.hasMessage(in: &session) || hasControl { received.signal() }
        }
    }

    /// Reads from the lanes; a message above the limit ends the session.
    private func withLanes(
        _ body: (inout YamuxSession, inout MessageLane, inout MessageLane) throws(LengthPrefixedMessages.TooLong) ->
            Void
    ) {
        do throws(LengthPrefixedMessages.TooLong) {
            try body(&session, &control, &bulk)
        } catch {
            let reason = "a message of \(error.announced) bytes, of which \(error.limit) are allowed"
            beginClose(Close(.tooBig, reason: reason, origin: .local), flush: false)
        }
    }

    // MARK: - Messages

    func receive() async throws(Close) -> [Message] {
        guard !isReceiving else { throw .misuse("another task receives already") }
        isReceiving = true
        defer { isReceiving = false }
        while true {
            var messages: [Message] = []
            var budget = Self.receiveBudget
            withLanes { (session, control, bulk) throws(LengthPrefixedMessages.TooLong) in
                try control.take(from: &session, to: &messages, budget: &budget)
                try bulk.take(from: &session, to: &messages, budget: &budget)
            }
            messages += datagramsIn
            datagramsIn = []
            kick()
            if !messages.isEmpty { return messages }
            if let close = ended ?? closing { throw close }
            guard await received.wait() else { throw .cancelled }
        }
    }

    // MARK: - Streams

    func openStream() async throws(Close) -> MuxStream {
        let signal = Signal()
        openers.append(signal)
        defer {
            openers.removeAll { $0 === signal }
            if session.mayOpen { openers.first?.signal() }
        }
        while true {
            if let close = ended ?? closing { throw close }
            if session.mayOpen, openers.first === signal {
                let id = session.open()
                kick()
                return makeStream(id)
            }
            guard await signal.wait() else { throw .cancelled }
        }
    }

    func acceptStream() async throws(Close) -> MuxStream {
        guard !isAccepting else { throw .misuse("another task accepts streams already") }
        isAccepting = true
        defer { isAccepting = false }
        while true {
            if let id = arrivedStreams.popFirst() { return makeStream(id) }
            if let close = ended ?? closing { throw close }
            guard await accepted.wait() else { throw .cancelled }
        }
    }

    private func makeStream(_ id: UInt32) -> MuxStream {
        let waiting = StreamWaiters()
        waiters[id] = waiting
        return MuxStream(id: id, core: self, waiters: waiting)
    }

    func read(_ id: UInt32, upTo limit: Int, _ waiting: StreamWaiters) async throws(StreamError) -> Bytes? {
        while true {
            if let bytes = session.read(id, upTo: limit) {
                kick()
                return bytes
            }
            guard let state = session.streams[id] else { throw .reset(0) }
            if state.hasReceivedEnd { return nil }
            if let close = ended ?? closing { throw .socketClosed(close) }
            if state.wasReset { throw .reset(0) }
            guard await waiting.readable.wait() else {
                reset(id)
                throw .cancelled
            }
        }
    }

    func write(_ bytes: Bytes, to id: UInt32, _ waiting: StreamWaiters) async throws(StreamError) {
        var rest = bytes
        while true {
            try checkWritable(id)
            if rest.isEmpty { return }
            let room = min(limits.sendBufferBytes, YamuxStreamState.initialWindow) - session.queued(id)
            if room > 0 {
                session.write(rest.takeFirst(min(room, rest.count)), to: id)
                kick()
                if rest.isEmpty { return }
            }
            guard await waiting.writable.wait() else {
                reset(id)
                throw .cancelled
            }
        }
    }

    func finish(_ id: UInt32) throws(StreamError) {
        if session.streams[id]?.wantsEnd == true { return }
        try checkWritable(id)
        session.finish(id)
        kick()
    }

    func reset(_ id: UInt32) {
        session.reset(id)
        react()
        waiters[id]?.readable.signal()
        waiters[id]?.writable.signal()
        kick()
    }

    private func checkWritable(_ id: UInt32) throws(StreamError) {
        if let close = ended ?? closing { throw .socketClosed(close) }
        guard let state = session.streams[id], !state.wasReset else { throw .reset(0) }
        if state.wantsEnd { throw .finished }
    }

    // MARK: - The end

    func close(_ code: CloseCode, reason: String) async -> Close {
        beginClose(Close(code, reason: reason, origin: .local), flush: true)
        let signal = Signal()
        closers.append(signal)
        while true {
            if let ended { return ended }
            guard await signal.wait() else {
                // The caller waits no longer, so nobody is left to wait for the peer.
                isLingerOver = true
                flushed.signal()
                return ended ?? closing ?? .cancelled
            }
        }
    }

    /// Stops everything but the delivery of what was accepted.
    private func beginClose(_ close: Close, flush: Bool) {
        guard ended == nil, closing == nil else { return }
        closing = close
        for (id, state) in session.streams where !session.isLane(id) && !state.wantsEnd { session.reset(id) }
        arrivedStreams.removeAll { session.streams[$0]?.wasReset ?? true }
        wakeEverybody()
        Task(executorPreference: executor) { await self.finishClose(close, flush: flush) }
    }

    private func finishClose(_ close: Close, flush: Bool) async {
        let deadline = time.now() + limits.linger
        let timer = Task(executorPreference: executor) { [time, flushed] in
            try? await time.sleep(until: deadline)
            flushed.signal()
        }
        func mayWait() -> Bool { ended == nil && !isLingerOver && time.now() < deadline }
        if flush {
            while mayWait(), !session.isFlushed || !datagramsOut.isEmpty || isSending {
                if !(await flushed.wait()) { break }
            }
        }
        session.goAway(flush ? .normal : .protocolError)
        kick()
        while mayWait(), session.hasOutput || isSending {
            if !(await flushed.wait()) { break }
        }
        timer.cancel()
        end(await inner.close(close.code, reason: close.reason))
    }

    private func end(_ close: Close) {
        guard ended == nil else { return }
        ended = close
        wakeEverybody()
        for signal in closers { signal.signal() }
        closers = []
        flushed.signal()
    }

    private func wakeEverybody() {
        received.signal()
        accepted.signal()
        for sender in senders { sender.signal.signal() }
        for signal in openers { signal.signal() }
        for waiting in waiters.values {
            waiting.readable.signal()
            waiting.writable.signal()
        }
    }
}
