import Testing

@testable import TransportKit

/// When a path is suspect and when it is lost, by what stays unanswered (B05, B07, B09).
@Suite struct AnswerWatchTests {
    private func at(_ seconds: Double) -> Instant { .zero + .milliseconds(Int64(seconds * 1000)) }

    private func watch(_ keepalive: Keepalive = Keepalive()) throws -> AnswerWatch {
        try #require(AnswerWatch(keepalive))
    }

    @Test func `What is unanswered for three seconds makes a path suspect, for five seconds it is lost`() throws {
        var watch = try watch()
        #expect(watch.deadline == nil)
        watch.sent(now: at(1))
        watch.sent(now: at(3))
        #expect(watch.deadline == at(4))
        #expect(watch.timeout(now: at(3.9), isAnswered: false) == .nothing)
        #expect(watch.timeout(now: at(4), isAnswered: false) == .probe)
        // Questions get lost too.
        watch.sent(now: at(4))
        for moment in [4.5, 5, 5.5] {
            #expect(watch.deadline == at(moment))
            #expect(watch.timeout(now: at(moment), isAnswered: false) == .probe)
        }
        #expect(watch.timeout(now: at(5.9), isAnswered: false) == .nothing)
        #expect(watch.timeout(now: at(6), isAnswered: false) == .lost)
    }

    @Test func `Any sign of life begins anew`() throws {
        var watch = try watch()
        watch.sent(now: at(1))
        #expect(watch.timeout(now: at(4), isAnswered: false) == .probe)
        watch.heard()
        #expect(watch.deadline == nil)
        #expect(watch.timeout(now: at(60), isAnswered: true) == .nothing)
        watch.sent(now: at(60))
        #expect(watch.deadline == at(63))
        #expect(watch.timeout(now: at(63), isAnswered: true) == .nothing)
        #expect(!watch.isWaiting)
    }

    // B09
    @Test func `A slow upload lives as long as bytes are acknowledged, and its end is found`() throws {
        var watch = try watch()
        watch.sent(now: at(0))
        for second in stride(from: 2.5, through: 100, by: 2.5) {
            watch.progressed(at: at(second))
            #expect(watch.timeout(now: at(second), isAnswered: false) == .nothing)
        }
        for moment in [103, 103.5, 104, 104.5] {
            #expect(watch.timeout(now: at(moment), isAnswered: false) == .probe)
            watch.progressed(at: at(102))
        }
        #expect(watch.timeout(now: at(105), isAnswered: false) == .lost)
        // An acknowledgement that is older than the question says nothing; a newer one does.
        var other = try self.watch()
        other.sent(now: at(0))
        #expect(other.timeout(now: at(3), isAnswered: false) == .probe)
        other.progressed(at: at(4))
        #expect(other.timeout(now: at(5), isAnswered: false) == .nothing)
        #expect(other.deadline == at(7))
    }

    // B04
    @Test func `A path that was used and is quiet since is asked once`() throws {
        var watch = try watch()
        watch.used(now: at(1))
        watch.used(now: at(2))
        #expect(watch.deadline == at(5) && !watch.isWaiting)
        #expect(watch.timeout(now: at(4), isAnswered: true) == .nothing)
        #expect(watch.timeout(now: at(5), isAnswered: true) == .probe)
        #expect(watch.deadline == nil, "the question is something that was sent")
        watch.sent(now: at(5))
        for moment in [8, 8.5, 9, 9.5] { #expect(watch.timeout(now: at(moment), isAnswered: false) == .probe) }
        #expect(watch.timeout(now: at(10), isAnswered: false) == .lost)
        // Answered, it is left alone.
        var other = try self.watch()
        other.used(now: at(1))
        other.sent(now: at(1))
        #expect(other.timeout(now: at(4), isAnswered: true) == .probe)
        other.sent(now: at(4))
        other.heard()
        #expect(other.deadline == nil)
        #expect(other.timeout(now: at(60), isAnswered: true) == .nothing)
        // What is suspected meanwhile is asked by that alone.
        other.used(now: at(60))
        other.sent(now: at(60))
        #expect(other.timeout(now: at(63), isAnswered: false) == .probe)
        other.heard()
        #expect(other.deadline == nil)
    }

    // B32
    @Test func `A flood that stops is asked about at once and again, and a trickle is not`() throws {
        var watch = try watch()
        for step in 0..<8 { watch.used(10_000, now: at(Double(step) * 0.1)) }
        #expect(watch.deadline == at(1))
        #expect(watch.timeout(now: at(1), isAnswered: true) == .probe)
        #expect(watch.deadline == nil)
        watch.sent(now: at(1))
        // Questions get lost too, until the path is suspect.
        for moment in [1.3, 1.6, 1.9, 2.2, 2.5, 2.8, 3.1, 3.4, 3.7] {
            #expect(watch.deadline == at(moment))
            #expect(watch.timeout(now: at(moment), isAnswered: false) == .probe)
        }
        #expect(watch.deadline == at(4))
        for moment in [4, 4.5, 5, 5.5] { #expect(watch.timeout(now: at(moment), isAnswered: false) == .probe) }
        #expect(watch.timeout(now: at(6), isAnswered: false) == .lost)
        // The same bytes with pauses.
        watch.heard()
        for step in 10..<18 { watch.used(10_000, now: at(Double(step) * 0.5)) }
        #expect(watch.deadline == at(8.5 + 3))
    }

    // B32
    @Test func `A flood that goes on after a question is a flood still`() throws {
        var watch = try watch()
        watch.used(70_000, now: at(1))
        #expect(watch.timeout(now: at(1.3), isAnswered: true) == .probe)
        watch.sent(now: at(1.3))
        watch.heard()
        watch.used(1000, now: at(1.4))
        watch.sent(now: at(1.4))
        #expect(watch.deadline == at(1.7))
        #expect(watch.timeout(now: at(1.7), isAnswered: false) == .probe)
        // One that has ended is not asked about again.
        watch.heard()
        #expect(watch.deadline == nil)
        watch.used(1000, now: at(2.5))
        #expect(watch.deadline == at(5.5))
    }

    // B05
    @Test func `A process that was stopped for ten seconds asks before it gives up`() throws {
        var watch = try watch()
        watch.sent(now: at(1))
        #expect(watch.timeout(now: at(11), isAnswered: false) == .probe)
        #expect(watch.deadline == at(11.5))
        // Stopped again.
        for moment in [23, 23.5, 24, 24.5] { #expect(watch.timeout(now: at(moment), isAnswered: false) == .probe) }
        #expect(watch.timeout(now: at(25), isAnswered: false) == .lost)
    }

    @Test func `A path whose round trips are longer than the limit is given the time`() throws {
        var watch = try watch()
        watch.sent(now: at(0))
        for moment in stride(from: 3, to: 9, by: 0.5) {
            #expect(watch.timeout(now: at(moment), isAnswered: false, patience: .seconds(9)) == .probe)
        }
        #expect(watch.timeout(now: at(9), isAnswered: false, patience: .seconds(9)) == .lost)
    }

    @Test func `Without pings, or without a limit, nothing is watched`() {
        #expect(AnswerWatch(Keepalive(interval: nil)) == nil)
        var keepalive = Keepalive()
        keepalive.lostAfter = nil
        #expect(AnswerWatch(keepalive) == nil)
    }
}
