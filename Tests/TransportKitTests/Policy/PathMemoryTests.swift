import Testing
import TransportKit

@Suite struct PathMemoryTests {
    let path = PathKey(network: "n", destination: "door:443")
    let start = WallTime(seconds: 1_000_000)

    private func memory(_ body: (inout PathHistory) -> Void) -> InProcessPathMemory {
        let memory = InProcessPathMemory()
        memory.change(path, at: start, body)
        return memory
    }

    private func record(_ memory: InProcessPathMemory, after seconds: Int) -> PathRecord {
        let now = start + .seconds(seconds)
        return memory.history(of: path, at: now).record(of: DayDemotionPolicy(), at: now)
    }

    @Test func `A winner is remembered for its day and no second longer`() {
        // R55, R59
        let memory = memory { $0.won(.webSocket, at: start) }
        #expect(record(memory, after: 0).winner == .webSocket)
        #expect(record(memory, after: 86_399).winner == .webSocket)
        #expect(record(memory, after: 86_400).winner == nil)
        #expect(memory.all(at: start + .seconds(86_400)).isEmpty)
        #expect(memory.history(of: PathKey(network: "other", destination: "door:443"), at: start).isEmpty)
    }

    @Test func `A win during a demotion does not end it, a further failure restarts it`() {
        // R49, R53, R54
        let memory = memory { history in
            history.apply(.demote(lifetime: .seconds(100), kind: .carrying, reason: "first"), to: .quic, at: start)
            history.won(.quic, at: start)
            history.carried(.quic, at: start)
        }
        #expect(record(memory, after: 99).demotions[.quic]?.reason == "first")
        #expect(record(memory, after: 99).winner == nil)
        memory.change(path, at: start + .seconds(99)) { history in
            history.apply(
                .demote(lifetime: .seconds(100), kind: .carrying, reason: "second"), to: .quic,
                at: start + .seconds(99))
        }
        #expect(record(memory, after: 198).demotions[.quic]?.reason == "second")
        let after = record(memory, after: 199)
        #expect(after.demotions.isEmpty)
        #expect(after.unproven == [.quic])
        memory.change(path, at: start + .seconds(200)) { $0.carried(.quic, at: start + .seconds(200)) }
        #expect(record(memory, after: 200).unproven.isEmpty)
    }

    @Test func `The round trip is smoothed by an eighth`() {
        let memory = memory { history in
            history.measured(roundTrip: .milliseconds(80))
            history.measured(roundTrip: .milliseconds(160))
        }
        #expect(record(memory, after: 0).smoothedRoundTrip == .milliseconds(90))
    }

    @Test(arguments: [-86_400 * 365 * 2, -3600])
    func `A clock that jumped cannot keep anything for longer than its lifetime`(correction: Int) {
        // R54: it was written while the clock stood ahead, and is read after the clock was set right.
        let memory = memory { history in
            history.apply(.demote(lifetime: .seconds(1000), kind: .carrying, reason: "broke"), to: .quic, at: start)
            history.won(.webSocket, at: start)
            history[.quic].lastProbe = start
            history.apply(.strike(.init(time: start, kind: .opening, reason: "late")), to: .webSocket, at: start)
        }
        #expect(record(memory, after: correction).demotions[.quic] != nil)
        #expect(memory.history(of: path, at: start + .seconds(correction))[.quic].lastProbe == nil)
        #expect(memory.history(of: path, at: start + .seconds(correction))[.webSocket].strikes.isEmpty)
        #expect(record(memory, after: correction + 999).demotions[.quic] != nil)
        #expect(record(memory, after: correction + 1000).demotions.isEmpty)
        #expect(record(memory, after: correction + 86_399).winner == .webSocket)
        #expect(record(memory, after: correction + 86_400).winner == nil)
    }

    @Test func `At most 64 networks are kept, the last ones`() {
        // R56
        let memory = InProcessPathMemory()
        for number in 0..<10_000 {
            let now = start + .seconds(number)
            memory.change(PathKey(network: "\(number)", destination: "d"), at: now) { $0.won(.quic, at: now) }
        }
        let kept = memory.all(at: start + .seconds(10_000))
        #expect(Set(kept.keys.map(\.network)) == Set((9936..<10_000).map { "\($0)" }))
    }

    @Test func `What was just written stays, where a clock that was set back has made everything equally old`() {
        // R54, R56
        for number in 0..<20 {
            let memory = InProcessPathMemory(limit: 3)
            for network in 0..<3 {
                memory.change(PathKey(network: "\(network)", destination: "d"), at: start + .seconds(network)) {
                    $0.won(.quic, at: start + .seconds(network))
                }
            }
            let now = start + .seconds(-3600)
            let here = PathKey(network: "here \(number)", destination: "d")
            memory.change(here, at: now) { $0.won(.webSocket, at: now) }
            #expect(memory.history(of: here, at: now).winner?.transport == .webSocket)
            #expect(memory.all(at: now).count == 3)
        }
    }

    @Test func `Many destinations of one network push out only each other`() {
        let memory = InProcessPathMemory()
        memory.change(PathKey(network: "home", destination: "door"), at: start) { $0.won(.quic, at: start) }
        for number in 0..<1000 {
            let now = start + .seconds(number)
            memory.change(PathKey(network: "office", destination: "\(number)"), at: now) { $0.won(.quic, at: now) }
        }
        let kept = memory.all(at: start + .seconds(1000))
        #expect(kept.keys.count { $0.network == "office" } == PathTable.destinationLimit)
        #expect(kept.keys.contains(PathKey(network: "home", destination: "door")))
    }
}
