internal import CNgtcp2
internal import TransportIO
internal import TransportKit
internal import TransportTLS

extension QUICConnection {
    // MARK: - This end closes

    /// Begins to close: what was accepted is delivered first, and the rest of the streams is reset.
    func close(_ code: CloseCode, reason: String, _ now: Instant) {
        guard verdict == nil else { return }
        let close = Close(code, reason: reason, origin: .local)
        closing = close
        endInboxes(close)
        guard isEstablished else {
            if mustWaitForProof { wakeWaiters() } else { terminate(now) }
            return
        }
        linger(now)
    }

    /// Ends once everything is delivered.
    func linger(_ now: Instant) {
        let code = closing?.code ?? .normal
        for stream in sink.streams.values where stream.isBidirectional && !stream.isControl {
            if !stream.outbound.isFinishing { abort(stream, code: Self.wireCode(code)) }
        }
        phase = .lingering(until: now + limits.linger)
        wakeWaiters()
        wantToSend()
    }

    /// Ends at once because the peer broke a rule of ours.
    func breakOff(_ code: CloseCode, _ reason: String, _ now: Instant) {
        guard verdict == nil else { return }
        closing = Close(code, reason: reason, origin: .local)
        if mustWaitForProof {
            isTerminationDue = true
            endInboxes(closing ?? .cancelled)
            wakeWaiters()
        } else {
            terminate(now)
        }
    }

    /// Whether the peer has acknowledged all that was accepted.
    var hasDelivered: Bool {
        guard isEstablished else { return true }
        var mustLookFurther = false
        for stream in sink.streams.values where !stream.isSendingOver {
            if !stream.outbound.isAcknowledged { return false }
            if stream.outbound.isFinishing {
                if !stream.outbound.isFinishSent { return false }
                mustLookFurther = true
            }
        }
        // Whether the end of a stream was acknowledged is not told apart from its last byte.
        return datagrams.isEmpty && (!mustLookFurther || library.bytesInFlight == 0)
    }

    /// Sends CONNECTION_CLOSE without waiting any longer.
    func terminate(_ now: Instant) {
        guard end == nil else { return }
        let close = closing ?? Close(.internalError, origin: .local)
        closeFrame =
            closeFrame ?? .application(Self.wireCode(close.code), close.code.isSynthetic ? "" : close.wireReason)
        enter(.closing(until: now + library.probeTimeout * 3), close)
        isCloseDue = true
        wantToSend()
        owner?.connectionEnded(self, with: close)
    }

    /// 1005 and 1006 are never on the wire (R120); error 0 is how QUIC says that there is no code.
    static func wireCode(_ code: CloseCode) -> UInt64 {
        code.isSynthetic ? 0 : min(code.rawValue, Varint.max)
    }

    /// The packet with CONNECTION_CLOSE, when one is due.
    func closePacket(into room: UnsafeMutableRawBufferPointer, now: Instant) -> OutgoingBatch? {
        guard isCloseDue, let closeFrame else { return nil }
        isCloseDue = false
        let largest = min(library.largestPacket, room.count)
        let size = unsafe library.write(
            closeFrame, into: UnsafeMutableRawBufferPointer(rebasing: room[..<largest]), now: now)
        for waiter in endWaiters { waiter.signal() }
        guard size > 0 else {
            // Nothing can be said before there are keys.
            phase = .gone
            return nil
        }
        library.beginBatch()
        return OutgoingBatch(
            range: 0..<Int(size), segmentBytes: Int(size), local: batchLocal, remote: library.batchRemote,
            ecn: library.batchECN)
    }

    // MARK: - The path or the peer ends it

    /// Acts on a status of the library that is not a success.
    func handle(_ status: Int32, _ now: Instant) {
        let isEstablished = isEstablished
        switch status {
        case TK_QUIC_DRAINING:
            ended(by: sink.wasReset ? nil : library.peerClose, now)
        case TK_QUIC_CLOSING:
            // RFC 9000 §10.2.1: less and less often.
            packetsSinceClose += 1
            isCloseDue = packetsSinceClose.nonzeroBitCount == 1
            if isCloseDue { wantToSend() }
        case TK_QUIC_IDLE:
            let limit = keepalive.idleTimeout.inWords
            lost(TransportError(.idle, "nothing has been heard of the peer for its idle limit, at most \(limit)"))
        case TK_QUIC_NO_VIABLE_PATH where peerAddress != nil:
            // A client's address was proven and forgotten again by its NAT, before the path was seen to take large packets.
            peerAddress?.forget()
        case TK_QUIC_NO_VIABLE_PATH:
            lost(TransportError(.idle, "nothing answers on any path to the peer"))
        case TK_QUIC_HANDSHAKE_TIMEOUT:
            lost(TransportError(.timedOut, "the QUIC handshake was not done within \(limits.handshakeTimeout.inWords)"))
        case TK_QUIC_VERSION_NEGOTIATION:
            lost(TransportError(.noCommonProtocol, "the service speaks no common version of QUIC"))
        case TK_QUIC_DROP, TK_QUIC_RETRY:
            lost(TransportError(.refused, "the first packet could not be used"))
        case TK_QUIC_CRYPTO:
            let alert = library.alert
            let error =
                library.verificationFailure ?? .raised(alert, role: role, established: isEstablished)
            fail(error, with: .alert(alert), now)
        default:
            fail(.library(status, role: role, established: isEstablished), with: .library(status), now)
        }
    }

    /// Ends because the peer broke the rules of the wire, and tells it which.
    func fail(_ error: TransportError, with frame: NgtcpConnection.CloseFrame, _ now: Instant) {
        guard end == nil else { return }
        closeFrame = frame
        let close = Close.pathLost(error)
        enter(.closing(until: now + library.probeTimeout * 3), close)
        isCloseDue = true
        wantToSend()
        owner?.connectionEnded(self, with: close)
    }

    /// Ends without a word.
    func lost(_ error: TransportError) {
        let isNews = end == nil
        let close = Close.pathLost(error)
        enter(.gone, close)
        if isNews { owner?.connectionEnded(self, with: close) }
    }

    /// The loop is gone, and with it every way to go on.
    func loopStopped() { lost(.loopStopped) }

    private func ended(by peer: NgtcpConnection.PeerClose?, _ now: Instant) {
        let close: Close =
            switch peer {
            case nil:
                .pathLost(TransportError(.forgotten, "the peer no longer knows the connection (stateless reset)"))
            // R120: the application's error 0 is a close without a code.
            case .application(0, _): Close(.noneGiven, origin: .remote)
            case .application(let code, let reason):
                Close(CloseCode(rawValue: code), reason: reason, origin: .remote)
            case .transport(let code, let reason):
                .pathLost(.peerClosed(code, reason: reason, role: role, established: isEstablished))
            case .other: .pathLost(TransportError(.pathReset, "the peer ended the connection"))
            }
        let isNews = end == nil
        enter(.draining(until: now + library.probeTimeout * 3), close)
        if isNews { owner?.connectionEnded(self, with: close) }
    }

    private func enter(_ phase: Phase, _ close: Close) {
        self.phase = phase
        if end == nil { end = close }
        carried = nil
        endInboxes(closing ?? close)
        wakeWaiters()
        switch phase {
        // `close` returns once the word is out.
        case .closing: break
        case .draining, .gone, .handshaking, .open, .lingering:
            for waiter in endWaiters { waiter.signal() }
        }
    }

    private func endInboxes(_ close: Close) {
        inbox.end(close)
        acceptable.end(close)
    }

    private func wakeWaiters() {
        handshake.signal()
        for waiter in sendWaiters + streamWaiters + handshakeWaiters { waiter.signal() }
        settleQuestions(false)
        for stream in sink.streams.values { stream.wake() }
    }

    // MARK: - What tasks wait for

    /// How the socket ended, once its close is on its way; nil while it is not.
    var finalWord: Close? {
        guard let end else { return nil }
        return isCloseDue ? nil : end
    }
}
