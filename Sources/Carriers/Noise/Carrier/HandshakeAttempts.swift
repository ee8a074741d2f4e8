internal import TransportKit

/// The initiator's handshakes on one standing socket, one after the other, until one is answered (R72, R73).
///
/// No socket and no clock: `now` and the random numbers are handed in.
struct HandshakeAttempts: ~Copyable {
    private enum Phase {
        case unsent
        case answering(until: Instant)
        case pausing(until: Instant)
        case done
    }

    private let key: StaticPrivateKey
    private let peer: StaticPublicKey
    private let settings: NoiseSettings
    private var handshake: InitiatorHandshake
    private var phase = Phase.unsent
    private var retry: Backoff
    /// How many handshakes have begun.
    private(set) var count = 1
    /// How many messages were not the answer.
    private(set) var ignored = 0

    init(key: StaticPrivateKey, peer: StaticPublicKey, settings: NoiseSettings) throws(NoiseError) {
        self.key = key
        self.peer = peer
        self.settings = settings
        retry = settings.retry
        handshake = try InitiatorHandshake(
            key: key, peer: peer, prologue: settings.prologue, payload: settings.payload())
    }

    /// What to send, if ``mustSend`` says so.
    var message1: Bytes { handshake.message1 }

    /// Whether ``message1`` is to be sent.
    var mustSend: Bool {
        switch phase {
        case .unsent: true
        case .answering, .pausing, .done: false
        }
    }

    /// When ``passed(now:random:)`` has something to do; nil where nothing is waited for.
    var deadline: Instant? {
        switch phase {
        case .answering(let until), .pausing(let until): until
        case .unsent, .done: nil
        }
    }

    /// Until when nothing is said, if the last handshake was not answered.
    var pause: Instant? {
        switch phase {
        case .pausing(let until): until
        case .unsent, .answering, .done: nil
        }
    }

    /// Message 1 is on its way.
    mutating func sent(now: Instant, isAfterWake: Bool) {
        phase = .answering(until: now + (isAfterWake ? settings.deadlineAfterWake : settings.deadline))
    }

    /// A message has arrived.
    ///
    /// - Returns: the session, if it was the answer. Anything else is ignored, and the wait goes on.
    mutating func received(_ message: Bytes) -> NoiseSession? {
        switch phase {
        case .answering, .pausing:
            // R73: only a message of message 2's length is looked at. One that is late is as good as long as no other was
            // asked for.
            guard message.count == HandshakeMessage.secondLength,
                let session = try? handshake.finish(reading: message)
            else {
                ignored += 1
                return nil
            }
            phase = .done
            return session
        case .unsent, .done:
            ignored += 1
            return nil
        }
    }

    /// Time has passed.
    ///
    /// - Parameter random: a number from 0 up to, but not including, 1; asked for where a pause begins.
    mutating func passed(now: Instant, random: () -> Double) throws(NoiseError) {
        if case .answering(let until) = phase, now >= until {
            phase = .pausing(until: now + retry.failed(fraction: random()))
        }
        if case .pausing(let until) = phase, now >= until { try renew() }
    }

    /// The network is back or has changed: a pause ends, and an answer that is still out is waited for only as long as in the
    /// first handshake after a wake.
    mutating func woken(now: Instant) throws(NoiseError) {
        retry.reset()
        switch phase {
        case .answering(let until):
            phase = .answering(until: min(until, now + settings.deadlineAfterWake))
        case .pausing:
            try renew()
        case .unsent, .done:
            break
        }
    }

    /// R69: each handshake is new.
    private mutating func renew() throws(NoiseError) {
        handshake = try InitiatorHandshake(
            key: key, peer: peer, prologue: settings.prologue, payload: settings.payload())
        phase = .unsent
        count += 1
    }
}
