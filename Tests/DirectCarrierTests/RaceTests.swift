import Testing
import TransportKit

@testable import DirectCarrier

/// The race as a value: what is told, what is answered, in simulated time.
@Suite struct RaceTests {
    static let names: [TransportName] = [.quic, .webSocket]
    static let silence = TransportError(.timedOut, "no answer")
    static let refusal = TransportError(.refused, "nobody listens")
    static let superseded = TransportError(.superseded, "another was first")

    static func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

    /// A race that has started, and what it said.
    static func start(
        _ record: PathRecord = PathRecord(), policy: any RacePolicy = HeadStartRacePolicy()
    ) -> (Race, [Race.Action]) {
        var race = Race(names, plan: policy.plan(names, record: record), now: .zero)
        let actions = race.passed(now: .zero)
        return (race, actions)
    }

    @Test func `QUIC starts first and the WebSocket after 250 ms`() {  // R34
        var (race, first) = Self.start()
        #expect(first == [.dial(.quic, generation: 1)])
        #expect(race.deadline == Self.at(250))
        #expect(race.passed(now: Self.at(249)).isEmpty)
        #expect(race.passed(now: Self.at(250)) == [.dial(.webSocket, generation: 1)])
        #expect(race.deadline == nil)
    }

    @Test func `A refused QUIC lets the WebSocket start at once`() {  // R35
        var (race, _) = Self.start()
        #expect(race.failed(.quic, Self.refusal, now: Self.at(3)) == [.dial(.webSocket, generation: 2)])
        #expect(
            race.opened(.webSocket, mayLearn: true, now: Self.at(20)) == [.win(.webSocket), .remember(.webSocket)])
        #expect(!race.isLearning)
    }

    @Test func `QUIC in time wins alone and the WebSocket is never dialled`() {  // R36
        var (race, _) = Self.start()
        #expect(race.opened(.quic, mayLearn: true, now: Self.at(40)) == [.win(.quic), .remember(.quic)])
        #expect(race.passed(now: Self.at(250)).isEmpty)
        #expect(race.entries.map(\.state) == [.won, .cancelled])
    }

    @Test func `A WebSocket that loses is given up`() {  // R36
        var (race, _) = Self.start()
        _ = race.passed(now: Self.at(250))
        #expect(
            race.opened(.quic, mayLearn: true, now: Self.at(260))
                == [.win(.quic), .cancel(.webSocket), .remember(.quic)])
        #expect(race.failed(.webSocket, TransportError(.cancelled, ""), now: Self.at(261)).isEmpty)
    }

    @Test func `A silent QUIC that loses goes on to learn, and what failed leaves the WebSocket first`() {  // R38
        var (race, _) = Self.start()
        _ = race.passed(now: Self.at(250))
        #expect(
            race.opened(.webSocket, mayLearn: true, now: Self.at(300)) == [.win(.webSocket), .remember(.webSocket)])
        #expect(race.isLearning)
        #expect(race.failed(.quic, Self.silence, now: Self.at(10_000)) == [.remember(.webSocket)])
        #expect(!race.isLearning)
    }

    @Test func `One lost packet does not keep QUIC second`() {  // R38
        var (race, _) = Self.start()
        _ = race.passed(now: Self.at(250))
        _ = race.opened(.webSocket, mayLearn: true, now: Self.at(300))
        // The second Initial got through; its claim was gone.
        #expect(race.failed(.quic, Self.superseded, now: Self.at(1100)) == [.remember(.quic)])
    }

    @Test func `With the WebSocket first and fast, QUIC is still probed in its turn`() {  // R39, R177
        var (race, first) = Self.start(PathRecord(winner: .webSocket))
        #expect(first == [.dial(.webSocket, generation: 1)])
        // R40: QUIC was not tried, so the memory is not refreshed.
        #expect(race.opened(.webSocket, mayLearn: true, now: Self.at(80)) == [.win(.webSocket)])
        #expect(race.isLearning)
        #expect(race.deadline == Self.at(250))
        #expect(race.passed(now: Self.at(250)) == [.probe(.quic)])
        #expect(race.failed(.quic, Self.superseded, now: Self.at(300)) == [.remember(.quic)])
        #expect(!race.isLearning)
    }

    @Test func `A probe that fails refreshes the memory of the WebSocket`() {  // R40
        var (race, _) = Self.start(PathRecord(winner: .webSocket))
        _ = race.opened(.webSocket, mayLearn: true, now: Self.at(80))
        _ = race.passed(now: Self.at(250))
        #expect(race.failed(.quic, Self.silence, now: Self.at(10_250)) == [.remember(.webSocket)])
    }

    @Test func `A probe that could not be made teaches nothing`() {  // R40
        var (race, _) = Self.start(PathRecord(winner: .webSocket))
        _ = race.opened(.webSocket, mayLearn: true, now: Self.at(80))
        _ = race.passed(now: Self.at(250))
        let noDescriptors = TransportError(.resources, "too many open files")
        #expect(race.failed(.quic, noDescriptors, now: Self.at(251)).isEmpty)
    }

    @Test func `Where a learning dial runs already, no second one starts`() {  // R41
        var (race, _) = Self.start(PathRecord(winner: .webSocket))
        #expect(race.opened(.webSocket, mayLearn: false, now: Self.at(80)) == [.win(.webSocket)])
        #expect(!race.isLearning)
        #expect(race.deadline == nil)
        var (other, _) = Self.start()
        _ = other.passed(now: Self.at(250))
        #expect(
            other.opened(.webSocket, mayLearn: false, now: Self.at(300))
                == [.win(.webSocket), .cancel(.quic), .remember(.webSocket)])
    }

    @Test func `Both dead fails once`() {  // R45
        var (race, _) = Self.start()
        #expect(race.failed(.quic, Self.refusal, now: Self.at(1)) == [.dial(.webSocket, generation: 2)])
        #expect(race.failed(.webSocket, Self.refusal, now: Self.at(2)) == [.fail])
        #expect(race.failed(.webSocket, Self.refusal, now: Self.at(3)).isEmpty)
        #expect(race.deadline == nil)
        #expect(race.winner == nil)
    }

    @Test func `In the same instant exactly one wins`() {
        var (race, _) = Self.start()
        _ = race.passed(now: Self.at(250))
        #expect(race.opened(.webSocket, mayLearn: true, now: Self.at(300)).first == .win(.webSocket))
        // A transport that did not look at its claim is told to close; that it opened is knowledge all the same.
        #expect(race.opened(.quic, mayLearn: true, now: Self.at(300)) == [.discard(.quic), .remember(.quic)])
    }

    @Test func `Whoever took the claim and then failed gives the other a new chance`() {
        var (race, _) = Self.start()
        _ = race.passed(now: Self.at(250))
        // The WebSocket took the claim and asks for its upgrade meanwhile.
        #expect(race.failed(.quic, Self.superseded, now: Self.at(300)).isEmpty)
        let refused = TransportError(.upgradeRefused, "403", number: 403)
        #expect(race.failed(.webSocket, refused, now: Self.at(310)) == [.dial(.quic, generation: 2)])
        #expect(race.opened(.quic, mayLearn: true, now: Self.at(350)) == [.win(.quic), .remember(.quic)])
    }

    @Test func `A dial that finds every claim gone does not go round for ever`() {
        var (race, actions) = Self.start()
        _ = race.failed(.quic, Self.superseded, now: Self.at(1))
        var rounds = 0
        actions = race.failed(.webSocket, Self.refusal, now: Self.at(2))
        while actions.contains(where: { if case .dial(.quic, _) = $0 { true } else { false } }) {
            rounds += 1
            actions = race.failed(.quic, Self.superseded, now: Self.at(2 + rounds))
        }
        #expect(actions == [.fail])
        #expect(rounds <= 2)
    }

    @Test func `A race that is abandoned gives up every dial and wins nothing more`() {
        var (race, _) = Self.start()
        _ = race.passed(now: Self.at(250))
        #expect(race.abandon(now: Self.at(260)) == [.cancel(.quic), .cancel(.webSocket)])
        #expect(race.opened(.quic, mayLearn: true, now: Self.at(261)) == [.discard(.quic)])
        #expect(race.failed(.webSocket, Self.refusal, now: Self.at(262)).isEmpty)
        #expect(race.deadline == nil)
    }

    @Test func `Where the WebSocket cannot connect, a QUIC that stands back is dialled`() {  // R54
        let demotion = Demotion(since: WallTime(seconds: 0), until: WallTime(seconds: .max), reason: "test")
        var (race, first) = Self.start(PathRecord(demotions: [.quic: demotion]))
        #expect(first == [.dial(.webSocket, generation: 1)])
        #expect(race.failed(.webSocket, Self.refusal, now: Self.at(2)) == [.dial(.quic, generation: 2)])
        #expect(race.opened(.quic, mayLearn: true, now: Self.at(40)).first == .win(.quic))
    }

    @Test func `A policy that leaves a transport out removes nothing`() {  // R54
        var race = Race(
            Self.names, plan: [Attempt(.webSocket, delay: .seconds(-1)), Attempt("other", delay: .zero)], now: .zero)
        #expect(
            race.passed(now: .zero)
                == [.dial(.webSocket, generation: 1), .dial(.quic, generation: 1)])
    }
}
