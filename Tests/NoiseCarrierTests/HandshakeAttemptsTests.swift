import Testing
import TransportKit

@testable import NoiseCarrier

/// R72, R73: how long a handshake is waited for, and what happens where nobody answers.
@Suite struct HandshakeAttemptsTests {
    let app = StaticPrivateKey()
    let box = StaticPrivateKey()

    private func begin() throws -> Attempts {
        Attempts(try HandshakeAttempts(key: app, peer: box.publicKey, settings: NoiseSettings()))
    }

    private func seconds(_ number: Int) -> Instant { .zero + .seconds(number) }

    private func answer(_ message1: Bytes) throws -> Bytes {
        try ResponderHandshake(key: box, reading: message1).answer().message2
    }

    @Test func `The deadline is 12 s, and 3 s in the first handshake after a wake`() throws {
        let attempts = try begin()
        attempts.sent(now: seconds(1), isAfterWake: false)
        #expect(attempts.deadline == seconds(13))
        let awakened = try begin()
        awakened.sent(now: seconds(1), isAfterWake: true)
        #expect(awakened.deadline == seconds(4))
    }

    @Test func `A missed deadline is followed by a pause with full jitter, which doubles up to a minute`() throws {
        let attempts = try begin()
        var now = Instant.zero
        var seen: Set<Bytes> = []
        for ceiling in [3, 6, 12, 24, 48, 60, 60] {
            #expect(seen.insert(attempts.message1).inserted)  // R69
            #expect(attempts.mustSend)
            attempts.sent(now: now, isAfterWake: false)
            now = now + .nanoseconds(11_999_999_999)
            try attempts.passed(now: now) { 0.5 }
            #expect(attempts.pause == nil)
            now = now + .nanoseconds(1)
            try attempts.passed(now: now) { 0.5 }
            #expect(attempts.pause == now + .milliseconds(ceiling * 500))
            now = now + .milliseconds(ceiling * 500)
            try attempts.passed(now: now) { 0.5 }
        }
        #expect(attempts.count == 8)
    }

    @Test func `Only a message of the answer's length is looked at, and a wrong one changes nothing`() throws {
        let attempts = try begin()
        attempts.sent(now: .zero, isAfterWake: false)
        let message2 = try answer(attempts.message1)
        for stray in [
            Bytes(), message2.prefix(47), message2.flipped(at: 40), message2.flipped(at: 0), attempts.message1,
        ] {
            #expect(!attempts.received(stray))
        }
        #expect(attempts.ignored == 5)
        #expect(attempts.deadline == seconds(12))
        #expect(attempts.received(message2))
        #expect(attempts.deadline == nil)
        #expect(!attempts.received(message2))
    }

    @Test func `The answer to an earlier handshake is none to the next`() throws {
        let attempts = try begin()
        attempts.sent(now: .zero, isAfterWake: false)
        let late = try answer(attempts.message1)
        try attempts.passed(now: seconds(12)) { 0 }
        attempts.sent(now: seconds(12), isAfterWake: false)
        #expect(!attempts.received(late))
        let message2 = try answer(attempts.message1)
        #expect(attempts.received(message2))
    }

    @Test func `An answer that comes in the pause is taken`() throws {
        let attempts = try begin()
        attempts.sent(now: .zero, isAfterWake: true)
        let late = try answer(attempts.message1)
        try attempts.passed(now: seconds(3)) { 0.9 }
        #expect(attempts.pause != nil)
        #expect(attempts.received(late))
    }

    @Test func `A wake ends the pause, shortens the wait, and starts the pauses over`() throws {
        let attempts = try begin()
        for round in 0..<4 {
            attempts.sent(now: seconds(round * 100), isAfterWake: false)
            try attempts.passed(now: seconds(round * 100 + 12)) { 0.99 }
            #expect(!attempts.mustSend)
            if round < 3 { try attempts.passed(now: seconds(round * 100 + 99)) { 0 } }
        }
        try attempts.woken(now: seconds(313))
        #expect(attempts.mustSend)
        attempts.sent(now: seconds(313), isAfterWake: true)
        try attempts.passed(now: seconds(316)) { 0.5 }
        #expect(attempts.pause == seconds(316) + .milliseconds(1500))

        let second = try begin()
        second.sent(now: .zero, isAfterWake: false)
        try second.woken(now: seconds(2))
        #expect(second.deadline == seconds(5))
        try second.woken(now: seconds(4))
        #expect(second.deadline == seconds(5))
    }
}

/// Attempts that an expectation can look at.
private final class Attempts {
    private var value: HandshakeAttempts

    init(_ value: consuming HandshakeAttempts) {
        self.value = value
    }

    var message1: Bytes { value.message1 }
    var mustSend: Bool { value.mustSend }
    var deadline: Instant? { value.deadline }
    var pause: Instant? { value.pause }
    var count: Int { value.count }
    var ignored: Int { value.ignored }

    func sent(now: Instant, isAfterWake: Bool) { value.sent(now: now, isAfterWake: isAfterWake) }

    func received(_ message: Bytes) -> Bool { value.received(message) != nil }

    func passed(now: Instant, random: () -> Double) throws(NoiseError) { try value.passed(now: now, random: random) }

    func woken(now: Instant) throws(NoiseError) { try value.woken(now: now) }
}
