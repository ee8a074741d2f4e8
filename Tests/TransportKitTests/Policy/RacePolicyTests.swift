import Testing
import TransportKit

@Suite struct RacePolicyTests {
    let both: [TransportName] = [.quic, .webSocket]
    let demoted = Demotion(since: WallTime(seconds: 0), until: WallTime(seconds: 10), reason: "it broke")

    @Test func `QUIC first, the WebSocket 250 ms later`() {
        // R34
        #expect(
            HeadStartRacePolicy().plan(both, record: PathRecord())
                == [Attempt(.quic, delay: .zero), Attempt(.webSocket, delay: .milliseconds(250))])
    }

    @Test func `The remembered winner goes first, and QUIC is still dialled`() {
        // R37, R39
        #expect(
            HeadStartRacePolicy().plan(both, record: PathRecord(winner: .webSocket))
                == [Attempt(.webSocket, delay: .zero), Attempt(.quic, delay: .milliseconds(250))])
    }

    @Test func `A demoted transport stands back even where it won, and is never left out`() {
        // R48, R49, R54
        #expect(
            HeadStartRacePolicy().plan(both, record: PathRecord(winner: .quic, demotions: [.quic: demoted]))
                == [Attempt(.webSocket, delay: .zero), Attempt(.quic, delay: .seconds(2))])
        let all = PathRecord(demotions: [.quic: demoted, .webSocket: demoted])
        #expect(HeadStartRacePolicy().plan(both, record: all).map(\.transport) == both)
        #expect(HeadStartRacePolicy().plan([.quic], record: all) == [Attempt(.quic, delay: .zero)])
    }

    @Test func `A remembered winner that is not configured changes nothing`() {
        #expect(HeadStartRacePolicy().plan(both, record: PathRecord(winner: "carrier pigeon")).map(\.transport) == both)
        #expect(HeadStartRacePolicy().plan([], record: PathRecord(winner: .quic)) == [])
    }

    @Test func `Every attempt waits for the one before it`() {
        let plan = HeadStartRacePolicy(headStart: .milliseconds(100))
            .plan(["a", "b", "c"], record: PathRecord(winner: "c"))
        #expect(plan.map(\.transport) == ["c", "a", "b"])
        #expect(plan.map(\.delay) == [.zero, .milliseconds(100), .milliseconds(200)])
    }

    @Test func `An adaptive head start is one and a half round trips, within bounds`() {
        func headStart(_ roundTrip: Duration?) -> Duration {
            let record = PathRecord(smoothedRoundTrip: roundTrip)
            let plan = AdaptiveRacePolicy().plan(both, record: record)
            #expect(plan.map(\.transport) == both)
            return plan[1].delay
        }
        #expect(headStart(nil) == .milliseconds(250))
        #expect(headStart(.milliseconds(40)) == .milliseconds(60))
        #expect(headStart(.microseconds(100)) == .milliseconds(10))
        #expect(headStart(.seconds(9)) == .seconds(2))
    }

    @Test func `A transport that stood back and has not carried since gets no head start`() {
        var record = PathRecord(smoothedRoundTrip: .milliseconds(40))
        record.unproven = [.quic]
        #expect(AdaptiveRacePolicy().plan(both, record: record).map(\.delay) == [.zero, .zero])
        record.demotions = [.quic: demoted]
        #expect(
            AdaptiveRacePolicy().plan(both, record: record)
                == [Attempt(.webSocket, delay: .zero), Attempt(.quic, delay: .seconds(2))])
    }

    @Test func `Parallel starts all at once, ordered one after the other`() {
        let record = PathRecord(winner: .webSocket, demotions: [.quic: demoted])
        #expect(ParallelRacePolicy().plan(both, record: record).map(\.delay) == [.zero, .zero])
        #expect(
            OrderedRacePolicy(patience: .seconds(3)).plan(both, record: record)
                == [Attempt(.quic, delay: .zero), Attempt(.webSocket, delay: .seconds(3))])
    }

    @Test func `Policies have the names of the config file`() {
        #expect(HeadStartRacePolicy().name == "head-start")
        #expect(ParallelRacePolicy().name == "parallel")
        #expect(OrderedRacePolicy().name == "ordered")
        #expect(AdaptiveRacePolicy().name == "adaptive")
        #expect(EvidenceDemotionPolicy().name == "evidence")
        #expect(DayDemotionPolicy().name == "day")
        #expect(NoDemotionPolicy().name == "none")
    }
}

@Suite struct DemotionPolicyTests {
    private func isDemoted(
        _ code: UInt64, _ origin: Close.Origin = .path, after age: Duration?, on transport: TransportName = .quic,
        migrated: Bool = false
    ) -> Bool {
        let ending = SessionEnding(
            transport: transport, close: Close(CloseCode(rawValue: code), origin: origin), sinceFirstMessage: age,
            migrated: migrated)
        let verdict = DayDemotionPolicy().judge(
            .ended(ending), history: PathHistory(), at: WallTime(seconds: 0), fraction: 0)
        guard case .demote(let lifetime, _, let reason) = verdict else { return false }
        #expect(lifetime == .seconds(86_400))  // R48
        #expect(!reason.isEmpty)
        return true
    }

    @Test(
        arguments: [
            // R46: before the first message. R50: codes of the service do not count, not even then.
            (1006, nil, true), (1005, nil, true), (0, nil, true), (999, nil, true), (1000, nil, false),
            (1001, nil, false),
            (1011, nil, false), (4403, nil, false), (4999, nil, false),
            // R47: within a minute, strictly.
            (1006, 0, true), (1006, 59_999, true), (1006, 60_000, false), (1006, 3_600_000, false),
            (1005, 59_999, true), (4403, 10, false), (1000, 10, false),
        ] as [(UInt64, Int?, Bool)])
    func `What counts as QUIC failing`(code: UInt64, milliseconds: Int?, expected: Bool) {
        let age = milliseconds.map { Duration.milliseconds($0) }
        #expect(isDemoted(code, after: age) == expected)
        #expect(isDemoted(code, .remote, after: age) == expected)
    }

    @Test func `What this end did itself does not count`() {
        #expect(!isDemoted(1006, .local, after: nil))
        #expect(!isDemoted(1005, .cancellation, after: nil))
    }

    @Test func `Other transports and sessions that moved are not blamed`() {
        // R54
        #expect(!isDemoted(1006, after: nil, on: .webSocket))
        #expect(!isDemoted(1006, after: nil, migrated: true))
    }

    @Test func `The minute is strict to the nanosecond`() {
        #expect(isDemoted(1006, after: .seconds(60) - .nanoseconds(1)))
        #expect(!isDemoted(1006, after: .seconds(60)))
    }

    @Test func `Without a policy nothing is demoted`() {
        let ending = SessionEnding(transport: .quic, close: Close(.pathLost, origin: .path), sinceFirstMessage: nil)
        let now = WallTime(seconds: 0)
        #expect(NoDemotionPolicy().judge(.ended(ending), history: PathHistory(), at: now, fraction: 0) == .sound)
    }
}

@Suite struct BackoffTests {
    @Test func `The ceiling doubles up to its cap, and full jitter lies under it`() {
        // R81, R136
        var backoff = Backoff()
        let ceilings = (0..<9).map { _ in backoff.failed(fraction: 1) }
        #expect(ceilings == [0.5, 1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) })
        #expect(backoff.attempts == 9)
        #expect(backoff.failed(fraction: 0) == .zero)
        #expect(backoff.failed(fraction: 0.5) == .seconds(30))
    }

    // B34
    @Test func `A lower ceiling holds for the wait that it is given for`() {
        var backoff = Backoff()
        let ceilings = (0..<7).map { _ in backoff.failed(fraction: 1, atMost: .seconds(5)) }
        #expect(ceilings == [0.5, 1, 2, 4, 5, 5, 5].map { Duration.seconds($0) })
        #expect(backoff.failed(fraction: 1) == .seconds(60))
    }

    @Test func `A thousand failures stay at the cap`() {
        var backoff = Backoff()
        for _ in 0..<1000 { #expect(backoff.failed(fraction: 1) <= .seconds(60)) }
        #expect(backoff.failed(fraction: 1) == .seconds(60))
    }

    @Test func `Only a session that lasted starts it over, and the next dial goes out at once`() {
        // R82
        var backoff = Backoff()
        for _ in 0..<4 { _ = backoff.failed(fraction: 1) }
        #expect(backoff.ended(after: .seconds(30) - .nanoseconds(1), fraction: 1) == .seconds(8))
        #expect(backoff.ended(after: .seconds(30), fraction: 1) == .zero)
        #expect(backoff.attempts == 0)
        #expect(backoff.failed(fraction: 1) == .milliseconds(500))
    }

    @Test func `Where everybody comes back, the first wait is as wide as after four failures`() {
        // B20, R127
        var backoff = Backoff()
        #expect(backoff.ended(after: .seconds(3600), isShared: true, fraction: 1) == .seconds(8))
        #expect(backoff.failed(isShared: true, fraction: 1) == .seconds(16))
        #expect(backoff.failed(fraction: 1) == .seconds(32))
        #expect(backoff.failed(isShared: true, fraction: 1) == .seconds(60))
        #expect(backoff.attempts == 4)
        #expect(backoff.ended(after: .seconds(30), fraction: 1) == .zero)
        #expect(backoff.failed(isShared: true, fraction: 0.25) == .seconds(2))
        var narrow = Backoff(base: .seconds(40), crowd: 4)
        #expect(narrow.failed(isShared: true, fraction: 1) == .seconds(60))
    }

    @Test func `Whoever asks waits one to two seconds at most`() {
        var backoff = Backoff()
        for _ in 0..<20 { _ = backoff.failed(fraction: 1) }
        #expect(backoff.wait(onDemand: 0) == .seconds(1))
        #expect(backoff.wait(onDemand: 1) == .seconds(2))
    }

    @Test func `A network that is back starts it over`() {
        // R61
        var backoff = Backoff()
        for _ in 0..<4 { _ = backoff.failed(fraction: 1) }
        backoff.reset()
        #expect(backoff.failed(fraction: 1) == .milliseconds(500))
    }

    @Test func `A fraction outside its range is held at its ends`() {
        var backoff = Backoff()
        #expect(backoff.failed(fraction: -1) == .zero)
        #expect(backoff.failed(fraction: 7) == .seconds(1))
    }
}
