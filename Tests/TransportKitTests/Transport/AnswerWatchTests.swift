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
        #expect(watch.deadline == at(6))
        watch.sent(now: at(4))
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
        #expect(watch.timeout(now: at(103), isAnswered: false) == .probe)
        watch.progressed(at: at(102))
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
        #expect(watch.timeout(now: at(8), isAnswered: false) == .probe)
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

    // B05
    @Test func `A process that was stopped for ten seconds asks before it gives up`() throws {
        var watch = try watch()
        watch.sent(now: at(1))
        #expect(watch.timeout(now: at(11), isAnswered: false) == .probe)
        #expect(watch.deadline == at(13))
        // Stopped again.
        #expect(watch.timeout(now: at(23), isAnswered: false) == .probe)
        #expect(watch.timeout(now: at(25), isAnswered: false) == .lost)
    }

    @Test func `A path whose round trips are longer than the limit is given the time`() throws {
        var watch = try watch()
        watch.sent(now: at(0))
        #expect(watch.timeout(now: at(3), isAnswered: false, patience: .seconds(9)) == .probe)
        #expect(watch.timeout(now: at(5), isAnswered: false, patience: .seconds(9)) == .probe)
        #expect(watch.timeout(now: at(7), isAnswered: false, patience: .seconds(9)) == .probe)
        #expect(watch.timeout(now: at(9), isAnswered: false, patience: .seconds(9)) == .lost)
    }

    @Test func `Without pings, or without a limit, nothing is watched`() {
        #expect(AnswerWatch(Keepalive(interval: nil)) == nil)
        var keepalive = Keepalive()
        keepalive.lostAfter = nil
        #expect(AnswerWatch(keepalive) == nil)
    }
}
