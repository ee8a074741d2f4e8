internal import TransportKit
internal import TransportTLS

extension QUICConnection {
    // MARK: - The end that dials

    /// Says the dialler's first words as early data, where its ticket allows that, and nothing else (R14). Before the first
    /// packet; where the service does not take them, ``sendTarget(_:firstFlight:)`` says them again.
    func sendEarly(_ target: Target, firstFlight: Bytes?) {
        guard role == .client, control == nil, library.mayBeginEarly(), openControl() else { return }
        sendTarget(target, firstFlight: firstFlight)
    }

    /// The service has not taken the early data: the library has forgotten its stream, and so does this end.
    func forgetEarlyWords() {
        if let control { sink.forget(control) }
        control = nil
        isTargetSent = false
        blocked.removeAll(where: \.isControl)
    }

    // MARK: - The end that listens

    /// Whether the client may be a recording (RFC 8446 §8): it has said something, and only a client that lives can end the
    /// handshake. The close waits for that, since before it no code of the application's can be sent
    /// (RFC 9000 §10.2.3).
    var mustWaitForProof: Bool { role == .server && !isEstablished && control != nil }

    /// The handshake is done: what was closed before that ends.
    func endIfDue(_ now: Instant) {
        guard closing != nil, end == nil else { return }
        if isTerminationDue { terminate(now) } else { linger(now) }
    }

    /// Whether the handshake is done; else the waiter is woken when it is, or cannot be any more.
    func confirmation(waiter: Signal) -> Result<Bool, Close> {
        if isEstablished || verdict != nil { forgetConfirmation(waiter) }
        if isEstablished { return .success(true) }
        if let verdict { return .failure(verdict) }
        if !handshakeWaiters.contains(where: { $0 === waiter }) { handshakeWaiters.append(waiter) }
        return .success(false)
    }

    func forgetConfirmation(_ waiter: Signal) {
        handshakeWaiters.removeAll { $0 === waiter }
    }

    // MARK: - What is told (R16)

    /// How the handshake went, behind "is open".
    var handshakeInWords: String {
        let resumption = isResumed ? ", TLS resumed" : ""
        return switch earlyData {
        case .none: resumption
        case .accepted: resumption + ", early data accepted"
        case .rejected: resumption + ", early data rejected"
        }
    }

    /// Counts how the handshake went.
    func countHandshake(in metrics: any MetricsSink) {
        metrics.add(1, to: "quic.handshakes")
        if isResumed { metrics.add(1, to: "quic.handshakes.resumed") }
        switch earlyData {
        case .none: break
        case .accepted: metrics.add(1, to: "quic.earlyData.accepted")
        case .rejected: metrics.add(1, to: "quic.earlyData.rejected")
        }
    }
}
