internal import TransportIO
internal import TransportKit

/// One open WebSocket on its loop: what joins the wire, the pipe, the clock and the tasks that wait.
///
/// It lives until its pipe is closed. Sendable is sound: it is confined to its loop, on which the actor in front of it and
/// the pipe under it both run.
@safe final class WebSocketSession: TurnEndHandler, @unchecked Sendable {
    /// How the peer ended the socket.
    private enum Settlement {
        case closed(CloseFrame)
        case broken(WireFailure)
    }

    /// How far the end has come.
    private enum Phase {
        case open
        /// The peer has ended it in one way or another; what it said before may still be answered in this turn.
        case settling(Settlement)
        /// Our close frame is on its way, the peer's is awaited.
        case closing
        /// Nothing is awaited but that the output is gone and the peer's direction ends.
        case finishing
        case gone
    }

    /// What a message costs beside its payload, so that empty ones are bounded too.
    private static let messageOverhead = 64
    /// R30: how long a close frame may take to arrive after writing has failed.
    private static let closeFrameGrace = Duration.milliseconds(250)

    /// How long what came before a broken rule may wait for its receiver, who may want to answer it.
    private static let answerGrace = Duration.milliseconds(250)

    let role: WebSocketWire.Role
    let limits: Limits
    private let pipe: Pipe
    private let loop: EventLoop
    private let allowsText: Bool
    private var wire: WebSocketWire
    private var liveness: Liveness
    /// What waits for an answer; only the end that dialled gives a path up by it.
    private var answers: AnswerWatch?
    private var lastWrite = Instant.zero
    private var questions: [PathQuestion] = []
    private var livenessTimer: LoopTimer?
    private var livenessDeadline = Instant.zero
    private var endTimer: LoopTimer?

    private var phase = Phase.open
    /// How the socket ended; it never changes once it is set.
    private(set) var end: Close?

    /// Whether its pipe is closed.
    var isGone: Bool {
        switch phase {
        case .open, .settling, .closing, .finishing: false
        case .gone: true
        }
    }

    /// Whether the peer ended it in good order without having said anything.
    var endedInSilence: Bool { end?.code == .normal && end?.origin == .remote && incoming.isEmpty }

    private var writeFailure: TransportError?
    private var peerHasEnded = false

    private var incoming: [Message] = []
    private var incomingWeight = 0
    private let arrived = Signal()

    private var senders: [Signal] = []
    private var closers: [Signal] = []
    private var whenGone: ((WebSocketSession) -> Void)?

    /// Takes the pipe over; ``start(with:)`` begins.
    init(
        _ pipe: Pipe, role: WebSocketWire.Role, allowsText: Bool, limits: Limits, keepalive: Keepalive,
        whenGone: @escaping (WebSocketSession) -> Void
    ) {
        self.role = role
        self.limits = limits
        self.pipe = pipe
        self.allowsText = allowsText
        self.whenGone = whenGone
        loop = pipe.loop
        wire = WebSocketWire(role: role, maxMessageBytes: limits.maxMessageBytes, headers: pipe.room.headers)
        liveness = Liveness(keepalive, now: loop.now())
        if role == .client { answers = AnswerWatch(keepalive) }
    }

    /// Begins with the bytes that came glued to the head of the upgrade.
    func start(with rest: Bytes) {
        pipe.owner = self
        // Unowned is sound, here and below: the pipe keeps the session until it is closed, and then no timer is armed.
        livenessTimer = loop.makeTimer { [unowned self] in checkLiveness() }
        armLiveness()
        if !rest.isEmpty { unsafe rest.withUnsafeBytes { unsafe pipeReceived($0) } }
        if incomingWeight < limits.receiveBufferBytes { pipe.resume() }
    }

    // MARK: - Receiving

    /// Waits for messages and takes all that are here. One task at a time.
    ///
    /// - Returns: nil where the caller does not run on the loop, or does so no longer.
    func receive() async throws(Close) -> [Message]? {
        while loop.isCurrent {
            if !incoming.isEmpty { return takeIncoming() }
            if let end { throw end }
            guard await arrived.wait() else { throw .cancelled }
        }
        return nil
    }

    private func takeIncoming() -> [Message] {
        let taken = incoming
        incoming = []
        incomingWeight = 0
        switch phase {
        case .settling: settleAfterThisTurn()
        case .open, .closing, .finishing, .gone: if pipe.isPaused { pipe.resume() }
        }
        return taken
    }

    /// Puts what the wire has made of the input before the receiver.
    private func deliver(from start: Int) {
        guard incoming.count > start else { return }
        for message in incoming[start...] { incomingWeight += message.payload.count + Self.messageOverhead }
        if incomingWeight >= limits.receiveBufferBytes { pipe.pause() }
        arrived.signal()
    }

    // MARK: - Sending

    /// Takes all messages if the path can take them now.
    ///
    /// - Returns: whether it did; if not, ``send(_:)`` waits.
    func sendNow(_ messages: [Message]) throws(Close) -> Bool {
        for message in messages { try check(message) }
        if let end { throw end }
        guard !messages.isEmpty else { return true }
        guard !Task.isCancelled else { throw .cancelled }
        guard hasRoom, senders.isEmpty else { return false }
        write(messages)
        return true
    }

    /// Waits until the path can take more, then takes all messages.
    func send(_ messages: [Message]) async throws(Close) {
        if try sendNow(messages) { return }
        try await waitForRoom()
        write(messages)
    }

    private func write(_ messages: [Message]) {
        answers?.used(now: loop.now())
        noteSending()
        pipe.write { output in
            for message in messages { wire.write(message, into: &output) }
        }
    }

    private func check(_ message: Message) throws(Close) {
        guard message.payload.count <= limits.maxMessageBytes else {
            throw Close(
                .tooBig,
                reason: "a message of \(message.payload.count) bytes, and \(limits.maxMessageBytes) are allowed",
                origin: .local)
        }
        switch message.format {
        case .binary: break
        case .text: guard allowsText else { throw .misuse("a socket with streams carries no text") }
        }
    }

    private var hasRoom: Bool { pipe.buffered < limits.sendBufferBytes }

    /// First come, first served, so that every batch keeps its place.
    private func waitForRoom() async throws(Close) {
        let signal = Signal()
        senders.append(signal)
        defer {
            senders.removeAll { $0 === signal }
            wakeSender()
        }
        while true {
            guard await signal.wait() else { throw .cancelled }
            if let end { throw end }
            if hasRoom, senders.first === signal { return }
        }
    }

    private func wakeSender() {
        guard hasRoom || end != nil else { return }
        senders.first?.signal()
    }

    // MARK: - Closing

    /// Ends the socket from this end and waits until the peer has taken what was sent, or the linger time is over.
    func close(_ code: CloseCode, reason: String) async -> Close {
        let end = beginClose(Close(code, reason: reason, origin: .local))
        guard case .closing = phase else { return end }
        let signal = Signal()
        closers.append(signal)
        _ = await signal.wait()
        closers.removeAll { $0 === signal }
        return end
    }

    /// The last reference to the socket is gone.
    func abandon() {
        _ = beginClose(Close(.goingAway, reason: "the socket was dropped", origin: .local))
    }

    /// - Returns: how the socket ends, which is how it ended if it had already.
    func beginClose(_ close: Close) -> Close {
        if case .settling(let settlement) = phase { settle(settlement) }
        if let end { return end }
        conclude(close)
        phase = .closing
        writeClose(CloseFrame(close.code, reason: close.reason))
        armEndTimer(limits.linger)
        // The peer's close frame must not be kept out by messages that nobody will take.
        pipe.resume()
        return close
    }

    /// Settles how the socket ended and tells every task that waits.
    private func conclude(_ close: Close) {
        guard end == nil else { return }
        end = close
        livenessTimer?.disarm()
        arrived.signal()
        for sender in senders { sender.signal() }
        settleQuestions(false)
    }

    private func writeClose(_ frame: CloseFrame) {
        pipe.write { output in
            wire.writeAnswers(into: &output)
            wire.writeClose(frame, into: &output)
        }
    }

    /// Both ends have said what they had to say. The server ends TCP first (RFC 6455 §7.1.1); where the protocol was
    /// broken, whoever noticed does.
    private func finish(endsFirst: Bool) {
        phase = .finishing
        armEndTimer(limits.linger)
        if endsFirst { pipe.finish() }
        pipe.resume()
        wakeClosers()
    }

    private func wakeClosers() {
        for closer in closers { closer.signal() }
    }

    private func armEndTimer(_ delay: Duration) {
        if endTimer == nil { endTimer = loop.makeTimer { [unowned self] in endTimeout() } }
        endTimer?.arm(at: loop.now() + delay)
    }

    private func endTimeout() {
        switch phase {
        case .open: disappear(Close.pathLost(writeFailure ?? TransportError(.pathReset, "the path was lost")))
        case .settling(let settlement): settle(settlement)
        case .closing, .finishing: disappear(nil)
        case .gone: break
        }
    }

    /// The pipe is of no more use.
    private func disappear(_ close: Close?) {
        guard !isGone else { return }
        phase = .gone
        if let close { conclude(close) }
        livenessTimer?.disarm()
        endTimer?.disarm()
        pipe.close()
        wakeClosers()
        whenGone?(self)
        whenGone = nil
    }

    // MARK: - Liveness

    /// Asks the peer for a sign of life.
    func ask(_ question: PathQuestion) {
        guard case .open = phase, isWhereItWas else { return question.settle(false) }
        questions.removeAll { $0.answer != nil }
        questions.append(question)
        ping()
    }

    /// TCP cannot move: where packets to the peer leave from another address now, it is not heard of again.
    private var isWhereItWas: Bool {
        guard let local = pipe.localAddress, let remote = pipe.remoteAddress else { return false }
        return remote.source.map { $0.isBeside(local) } ?? false
    }

    private func settleQuestions(_ isAnswered: Bool) {
        guard !questions.isEmpty else { return }
        let asked = questions
        questions = []
        for question in asked { question.settle(isAnswered) }
    }

    private func ping() {
        noteSending()
        pipe.write { wire.writePing(into: &$0) }
    }

    /// Something is about to be written that needs an answer.
    private func noteSending() {
        guard answers != nil else { return }
        let now = loop.now()
        // After a pause the kernel is asked what became of the last bytes: it does not tell by itself.
        if answers?.isWaiting == true, now - lastWrite >= Self.pause, pipe.transmission.isAcknowledged {
            answers?.heard()
        }
        lastWrite = now
        answers?.sent(now: now)
        if let deadline = answers?.deadline, deadline < livenessDeadline { armLiveness() }
    }

    private static let pause = Duration.seconds(1)

    private func armLiveness() {
        livenessDeadline = min(liveness.deadline, answers?.deadline ?? liveness.deadline)
        livenessTimer?.arm(at: livenessDeadline)
    }

    private func checkLiveness() {
        guard case .open = phase else { return }
        let now = loop.now()
        let transmission = pipe.transmission
        if let acknowledged = transmission.lastAcknowledgement { answers?.progressed(at: acknowledged) }
        switch answers?.timeout(now: now, isAnswered: transmission.isAcknowledged) {
        case .nothing, nil: break
        case .probe: ping()
        case .lost:
            return disappear(.pathLost(TransportError(.idle, "what was sent has stayed unanswered for too long")))
        }
        switch liveness.timeout(now: now, transmission) {
        case .nothing: break
        case .ping: ping()
        case .lost:
            return disappear(.pathLost(TransportError(.idle, "the path was silent for too long")))
        }
        armLiveness()
    }
}

extension WebSocketSession: PipeOwner {
    func pipeConnected() {}

    func pipeSecured() {}

    func pipeReceived(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .open:
            liveness.received(now: loop.now())
            answers?.heard()
            settleQuestions(true)
        case .closing: break
        case .settling, .finishing, .gone: return
        }
        let start = incoming.count
        var settlement: Settlement?
        do throws(WireFailure) {
            unsafe try wire.receive(bytes, into: &incoming)
            if !allowsText, incoming[start...].contains(where: { $0.format == .text }) {
                throw WireFailure(.unsupported, "text on a socket with streams")
            }
            settlement = wire.peerClose.map { .closed($0) }
        } catch {
            settlement = .broken(error)
        }
        guard end == nil else {
            incoming.removeSubrange(start...)
            if let settlement { settle(settlement) }
            return
        }
        if incoming.count > start, answers != nil {
            answers?.used(now: loop.now())
            // From the first use on the timer runs; it looks by itself for later ones.
            if let deadline = answers?.deadline, deadline < livenessDeadline { armLiveness() }
        }
        deliver(from: start)
        if let settlement {
            guard incoming.count > start else { return settle(settlement) }
            phase = .settling(settlement)
            switch settlement {
            case .closed: settleAfterThisTurn()
            case .broken: armEndTimer(Self.answerGrace)
            }
        } else {
            answerPings()
        }
    }

    /// Where the peer takes nothing of what is written, its pings wait in the wire, which keeps only so many of them.
    private func answerPings() {
        guard wire.hasAnswers, hasRoom else { return }
        pipe.write { wire.writeAnswers(into: &$0) }
    }

    /// A receiver on this loop answers before the turn ends, as one that was called at once would.
    private func settleAfterThisTurn() {
        loop.atEndOfTurn(self)
    }

    func turnEnds() {
        if case .settling(let settlement) = phase { settle(settlement) }
    }

    private func settle(_ settlement: Settlement) {
        switch settlement {
        case .closed(let frame):
            conclude(frame.received)
            writeClose(frame)
            finish(endsFirst: role == .server || peerHasEnded)
        case .broken(let failure):
            conclude(failure.close)
            writeClose(CloseFrame(failure.code, reason: failure.what))
            finish(endsFirst: true)
        }
    }

    func pipeFlushed() {
        answerPings()
        wakeSender()
        if peerHasEnded, pipe.isFinished, case .finishing = phase { disappear(nil) }
    }

    func pipeEnded() {
        peerHasEnded = true
        switch phase {
        case .open:
            let cut = TransportError(.pathReset, "the peer ended the connection without a close frame")
            disappear(.pathLost(writeFailure ?? cut))
        case .settling: break
        case .closing: disappear(nil)
        case .finishing:
            pipe.finish()
            if pipe.isFinished { disappear(nil) }
        case .gone: break
        }
    }

    func pipeFailed(_ error: TransportError, while activity: Pipe.Activity) {
        switch (phase, activity) {
        case (.gone, _): break
        case (.open, .writing):
            // R30: what the peer said before it went may still be on its way in.
            writeFailure = error
            armEndTimer(Self.closeFrameGrace)
            pipe.resume()
        case (.open, _): disappear(.pathLost(writeFailure ?? error))
        case (.settling(let settlement), _):
            settle(settlement)
            disappear(nil)
        case (.closing, _), (.finishing, _): disappear(nil)
        }
    }
}
