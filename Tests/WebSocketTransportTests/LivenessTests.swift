import Testing
import TransportKit
import WebSocketTransport

/// When a path is pinged and when it is lost, in simulated time (R28, R33, B09).
@Suite struct LivenessTests {
    private func at(_ seconds: Double) -> Instant { .zero + .milliseconds(Int64(seconds * 1000)) }

    private func state(_ acknowledged: Bool = true, last: Double? = nil, reading: Bool = true) -> Liveness.Transmission
    {
        Liveness.Transmission(
            isAcknowledged: acknowledged, lastAcknowledgement: last.map { at($0) }, isReading: reading)
    }

    @Test func `A quiet path is pinged after the interval and lost after the idle limit`() {
        var liveness = Liveness(Keepalive(), now: .zero)
        #expect(liveness.deadline == at(15))
        #expect(liveness.timeout(now: at(14.9), state()) == .nothing)
        #expect(liveness.timeout(now: at(15), state()) == .ping)
        #expect(liveness.timeout(now: at(16), state(last: 15)) == .nothing)
        #expect(liveness.deadline == at(45))
        #expect(liveness.timeout(now: at(44.9), state(last: 15)) == .nothing)
        #expect(liveness.timeout(now: at(45), state(last: 15)) == .lost)
    }

    @Test func `Any received byte is life and makes the ping needless`() {
        var liveness = Liveness(Keepalive(), now: .zero)
        for second in stride(from: 10.0, through: 300, by: 10) {
            liveness.received(now: at(second))
            #expect(liveness.deadline == at(second + 15))
        }
        #expect(liveness.timeout(now: at(315), state()) == .ping)
        liveness.received(now: at(316))
        #expect(liveness.deadline == at(331))
    }

    @Test func `An upload that is being acknowledged keeps the path alive, and its cut is found within the limit`() {
        var liveness = Liveness(Keepalive(interval: .seconds(5), idleTimeout: .seconds(15)), now: .zero)
        #expect(liveness.timeout(now: at(5), state(false, last: 5)) == .ping)
        var now = liveness.deadline
        // Ten minutes of upload over which the ping does not get out.
        while now < at(600) {
            #expect(liveness.timeout(now: now, state(false, last: now.seconds - 0.2)) == .nothing)
            #expect(liveness.deadline > now)
            now = liveness.deadline
        }
        // The link is cut at 600 s.
        while now < at(614.9) {
            #expect(liveness.timeout(now: now, state(false, last: 599.9)) == .nothing)
            now = liveness.deadline
        }
        #expect(now == at(614.9))
        #expect(liveness.timeout(now: now, state(false, last: 599.9)) == .lost)
    }

    @Test func `The clock of a ping starts when it has left`() {
        var liveness = Liveness(Keepalive(), now: .zero)
        #expect(liveness.timeout(now: at(15), state(false, last: 14)) == .ping)
        // It left, behind other output, at 40 s; the answer may take 30 s from there.
        #expect(liveness.timeout(now: at(45), state(true, last: 40)) == .nothing)
        #expect(liveness.deadline == at(70))
        #expect(liveness.timeout(now: at(70), state(true, last: 40)) == .lost)
    }

    @Test func `An end that does not read lives by acknowledgements of its pings`() {
        var liveness = Liveness(Keepalive(), now: .zero)
        var pings = 0
        var lastPing = 0.0
        var now = liveness.deadline
        while now < at(600) {
            switch liveness.timeout(now: now, state(true, last: lastPing, reading: false)) {
            case .ping:
                pings += 1
                lastPing = now.seconds
            case .nothing: break
            case .lost: Issue.record("lost at \(now.seconds) s")
            }
            #expect(liveness.deadline > now)
            now = liveness.deadline
        }
        #expect(pings > 10)
        // Cut: the next ping is not acknowledged.
        var end: Instant?
        while end == nil, now < at(800) {
            if liveness.timeout(now: now, state(false, last: lastPing, reading: false)) == .lost { end = now }
            now = max(liveness.deadline, now + .milliseconds(1))
        }
        #expect(end != nil)
    }

    @Test func `Without an interval there are no pings, but the idle limit holds`() {
        var liveness = Liveness(Keepalive(interval: nil, idleTimeout: .seconds(30)), now: .zero)
        #expect(liveness.deadline == at(30))
        #expect(liveness.timeout(now: at(29), state()) == .nothing)
        #expect(liveness.timeout(now: at(30), state()) == .lost)
    }
}

extension Instant {
    fileprivate var seconds: Double { Double(nanoseconds) / 1e9 }
}
