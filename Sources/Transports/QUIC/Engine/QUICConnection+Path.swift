internal import CNgtcp2
internal import Synchronization
internal import TransportKit

/// What the owner's look at the machine's network has led to.
enum PathStep {
    /// The connection leaves from the address that it would be dialled from now.
    case same
    /// It has moved.
    case moved
    /// It has to, but has only just done so: the owner will have it look again.
    case later
    /// There is no way to the peer, or no way to go there.
    case none
}

extension QUICConnection {
    /// Where a connection has moved to from the path it was dialled on, for any thread (R54).
    final class Migration: Sendable {
        private let address = Mutex<SocketAddress?>(nil)

        var hasHappened: Bool { localAddress != nil }

        /// Where it stands now; nil where it has not moved.
        var localAddress: SocketAddress? { address.withLock(\.self) }

        func happened(to local: SocketAddress) { address.withLock { $0 = local } }
    }

    /// Asks the peer for a sign of life, from where the machine's network now is; the question is settled when one comes.
    func ask(_ question: PathQuestion, _ now: Instant) {
        switch phase {
        case .open: break
        case .handshaking, .lingering, .closing, .draining, .gone:
            question.settle(false)
            return
        }
        questions.removeAll { $0.answer != nil }
        questions.append(question)
        lookForPath()
    }

    /// Leaves from where the machine's network now is, and asks the peer from there.
    func lookForPath() {
        guard case .open = phase else { return }
        switch owner?.connectionLooksForPath(self) ?? .same {
        case .same: ping()
        // Its path challenge is the question.
        case .moved, .later: break
        case .none: settleQuestions(false)
        }
    }

    /// Sends a PING with the next packet.
    func ping() {
        guard case .open = phase else { return }
        library.askForPing()
        isPingDue = true
        wantToSend()
    }

    /// Moves to a path that leaves from another address (R19).
    ///
    /// - Returns: whether the connection has moved. It cannot before its handshake is confirmed, nor while the peer has
    ///   given no further ids.
    func move(to local: SocketAddress, remote: SocketAddress, _ now: Instant) -> Bool {
        guard case .open = phase, library.move(to: local, remote: remote, now: now) == 0 else { return false }
        pathLocal = local
        answers?.heard()
        migration.happened(to: local)
        wantToSend()
        return true
    }

    /// A packet of the peer's came that brought bytes or acknowledged some, on the path that leaves from `local`.
    func heard(on local: SocketAddress) {
        // What still comes on the path before says nothing about the one that is in use.
        if let pathLocal, pathLocal != local { return }
        answers?.heard()
        if !questions.isEmpty { settleQuestions(true) }
    }

    func settleQuestions(_ isAnswered: Bool) {
        let asked = questions
        questions = []
        for question in asked { question.settle(isAnswered) }
    }

    /// Tells the owner what has become of the paths that were tried.
    func settlePaths() {
        guard !sink.triedPaths.isEmpty else { return }
        let tried = sink.triedPaths
        sink.triedPaths = []
        for (local, isSound) in tried {
            if local == pathLocal { settleQuestions(isSound) }
            owner?.connection(self, triedPathFrom: local, isSound: isSound)
        }
    }

    /// Something was written that may need an answer.
    func noteSent(_ now: Instant) {
        if isPingDue {
            isPingDue = false
            library.setKeepalive(keepalive.interval)
        }
        if answers?.isWaiting == false, library.bytesInFlight > 0 { answers?.sent(now: now) }
    }

    /// Looks at what stays unanswered.
    func checkAnswers(_ now: Instant) {
        guard case .open = phase, let deadline = answers?.deadline, now >= deadline else { return }
        let isAnswered = library.bytesInFlight == 0
        switch answers?.timeout(now: now, isAnswered: isAnswered, patience: library.probeTimeout * 3) {
        case .nothing, nil: break
        case .probe:
            switch owner?.connectionLooksForPath(self) ?? .same {
            case .moved, .later: break
            case .same, .none: ping()
            }
        case .lost:
            lost(TransportError(.idle, "what was sent has stayed unanswered for too long"))
        }
    }
}
