package import TransportKit

/// Decides when a quiet path is pinged and when a silent one is lost (R28, R33).
///
/// No I/O and no clock. Any received byte is a sign of life (B09). An acknowledgement of TCP is one too, but only where
/// no byte can be expected: while output, and with it perhaps the ping, is still on its way, and while this end does not
/// read.
package struct Liveness {
    /// What to do.
    package enum Action: Sendable, Equatable {
        case nothing
        case ping
        case lost
    }

    /// What the driver knows of the other direction when it asks.
    package struct Transmission: Sendable {
        /// Whether everything written has been acknowledged by the peer's kernel.
        package var isAcknowledged: Bool
        /// When the last acknowledgement came, as far as known.
        package var lastAcknowledgement: Instant?
        /// Whether this end reads.
        package var isReading: Bool

        /// Says how it stands.
        package init(isAcknowledged: Bool, lastAcknowledgement: Instant?, isReading: Bool) {
            self.isAcknowledged = isAcknowledged
            self.lastAcknowledgement = lastAcknowledgement
            self.isReading = isReading
        }
    }

    private let interval: Duration?
    private let idleTimeout: Duration
    private var lastReceived: Instant
    private var lastSign: Instant
    /// When the ping that is out was acknowledged or, until that is known, written.
    private var pinged: Instant?

    /// Starts the clock.
    package init(_ keepalive: Keepalive, now: Instant) {
        interval = keepalive.interval
        idleTimeout = keepalive.idleTimeout
        lastReceived = now
        lastSign = now
    }

    /// When ``timeout(now:_:)`` wants to be asked next.
    package var deadline: Instant {
        guard let pinged else {
            guard let interval else { return lastSign + idleTimeout }
            return min(lastReceived + interval, lastSign + idleTimeout)
        }
        return max(lastSign + idleTimeout, pinged + grace)
    }

    /// How long the answer to a ping may take, from when the ping had left.
    private var grace: Duration { idleTimeout - min(interval ?? .zero, idleTimeout) }

    /// Bytes came.
    package mutating func received(now: Instant) {
        lastReceived = max(lastReceived, now)
        lastSign = max(lastSign, now)
        pinged = nil
    }

    /// The deadline has passed, or may have.
    package mutating func timeout(now: Instant, _ transmission: Transmission) -> Action {
        if let acknowledged = transmission.lastAcknowledgement { note(acknowledged, transmission) }
        guard let pinged else {
            guard now < lastSign + idleTimeout else {
                if transmission.isReading { return .lost }
                // Without pings nothing can be known while this end does not read.
                received(now: now)
                return .nothing
            }
            guard let interval, now >= lastReceived + interval else { return .nothing }
            self.pinged = now
            return .ping
        }
        return now >= max(lastSign + idleTimeout, pinged + grace) ? .lost : .nothing
    }

    private mutating func note(_ acknowledged: Instant, _ transmission: Transmission) {
        guard let pinged, acknowledged >= pinged else {
            if !transmission.isAcknowledged { lastSign = max(lastSign, acknowledged) }
            return
        }
        switch (transmission.isAcknowledged, transmission.isReading) {
        case (false, _):
            // The heartbeat's clock starts when the ping has left.
            lastSign = max(lastSign, acknowledged)
            self.pinged = acknowledged
        case (true, true):
            self.pinged = acknowledged
        case (true, false):
            // The answer cannot be seen; that the ping arrived has to do.
            received(now: acknowledged)
        }
    }
}
