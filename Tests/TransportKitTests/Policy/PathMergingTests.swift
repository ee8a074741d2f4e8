import Testing
import TransportKit
import TransportKitTesting

/// What two hosts have found out of one path since both knew the same (R54).
@Suite struct PathMergingTests {
    private static let start = WallTime(seconds: 1_800_000_000)

    /// A host goes on from `base`: it changes some fields at random.
    private func goOn(
        from base: PathHistory, at seconds: Int64, _ random: inout SeededGenerator
    ) -> PathTable.Entry {
        var history = base
        var now = WallTime(seconds: Self.start.seconds + seconds)
        for _ in 0..<Int.random(in: 0..<4, using: &random) {
            let transport: TransportName = Bool.random(using: &random) ? .quic : .webSocket
            // No two of anything happen in the same second, so that there is one newest.
            now.seconds += Int64.random(in: 1..<50, using: &random) * 2
            switch Int.random(in: 0..<8, using: &random) {
            case 0: history.won(transport, at: now)
            case 1: history.carried(transport, at: now)
            case 2: history.measured(roundTrip: .milliseconds(Int.random(in: 1..<100, using: &random)))
            case 3: history[transport].lastProbe = now
            case 4: history[transport].lastFailure = now
            case 5:
                history.apply(
                    .strike(.init(time: now, kind: .opening, reason: "\(now.seconds)")), to: transport, at: now)
            case 6:
                let lifetime = Duration.seconds(3600)
                history.apply(
                    .demote(lifetime: lifetime, kind: .carrying, reason: "\(now.seconds)"), to: transport, at: now)
            default: history.apply(Bool.random(using: &random) ? .lift : .clear, to: transport, at: now)
            }
        }
        return PathTable.Entry(history: history, changed: now)
    }

    @Test func `10,000 random pairs of hosts lose no evidence, whichever merges`() {
        var random = SeededGenerator.announced()
        for _ in 0..<10_000 {
            let base = goOn(from: PathHistory(), at: 0, &random).history
            let ours = goOn(from: base, at: 1000, &random)
            let theirs = goOn(from: base, at: 1001, &random)
            let merged = ours.merging(theirs, since: base)
            #expect(merged == theirs.merging(ours, since: base))
            // What only one side has changed is as that side says, and nobody's own word changes it.
            #expect(ours.merging(PathTable.Entry(history: base, changed: Self.start), since: base) == ours)
            #expect(ours.merging(ours, since: base) == ours)
            for transport in [TransportName.quic, .webSocket] {
                let (known, one, other) = (base[transport], ours.history[transport], theirs.history[transport])
                let all = merged.history[transport]
                for demotion in [one.demotion, other.demotion].compactMap(\.self) where demotion != known.demotion {
                    #expect(all.demotion.map { $0.until >= demotion.until } == true)
                }
                if one.demotion == nil, other.demotion == nil { #expect(all.demotion == nil) }
                let fresh = (one.strikes + other.strikes).filter { !known.strikes.contains($0) }
                #expect(fresh.allSatisfy(all.strikes.contains))
                #expect(all.strikes.map(\.time) == all.strikes.map(\.time).sorted())
            }
        }
    }

    @Test func `Of two who never knew the same, the newest winner and all strikes remain`() {
        func entry(_ seconds: Int64, _ winner: TransportName) -> PathTable.Entry {
            let now = WallTime(seconds: Self.start.seconds + seconds)
            var history = PathHistory()
            history.won(winner, at: now)
            history.measured(roundTrip: .seconds(seconds))
            history.apply(.strike(.init(time: now, kind: .opening, reason: "\(seconds)")), to: .quic, at: now)
            return PathTable.Entry(history: history, changed: now)
        }
        let merged = entry(2, .quic).merging(entry(1, .webSocket))
        #expect(merged.history.winner?.transport == .quic)
        #expect(merged.history.smoothedRoundTrip == .seconds(2))
        #expect(merged.history[.quic].strikes.map(\.reason) == ["1", "2"])
        #expect(merged.changed.seconds == Self.start.seconds + 2)
    }
}
