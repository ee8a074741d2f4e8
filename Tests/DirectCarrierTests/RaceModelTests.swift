import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// Random sequences of events against a plain record of what was told and answered.
@Suite struct RaceModelTests {
    /// What an observer may conclude from the actions alone.
    private struct Record {
        var running: Set<TransportName> = []
        var probing: Set<TransportName> = []
        var tried: Set<TransportName> = []
        var failed: Set<TransportName> = []
        var winner: TransportName?
        var ends = 0
        var lastRemembered: TransportName?
    }

    @Test func `20,000 random races have one winner at most, one end, and no dial left over`() {
        var random = SeededGenerator.announced()
        for _ in 0..<20_000 { play(&random) }
    }

    private func play(_ random: inout SeededGenerator) {
        let names = Array([TransportName.quic, .webSocket, "third"].prefix(Int.random(in: 1...3, using: &random)))
        let policies: [any RacePolicy] = [HeadStartRacePolicy(), ParallelRacePolicy(), OrderedRacePolicy()]
        let record = PathRecord(winner: Bool.random(using: &random) ? names.randomElement(using: &random) : nil)
        let policy = policies.randomElement(using: &random) ?? HeadStartRacePolicy()
        var race = Race(names, plan: policy.plan(names, record: record), now: .zero)
        var model = Record()
        var now = Instant.zero
        note(race.passed(now: now), &model, names)
        for _ in 0..<40 {
            if Bool.random(using: &random) { now = now + .milliseconds(Int.random(in: 0...400, using: &random)) }
            let busy = model.running.union(model.probing).sorted { $0.rawValue < $1.rawValue }
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3:
                guard let name = busy.randomElement(using: &random) else { continue }
                let wasWon = model.winner != nil
                model.running.remove(name)
                model.probing.remove(name)
                let actions = race.opened(name, mayLearn: .random(using: &random), now: now)
                #expect(actions.contains(.win(name)) == (!wasWon && model.ends == 0))
                #expect(actions.contains(.discard(name)) == (wasWon || model.ends > 0))
                note(actions, &model, names)
            case 3..<7:
                guard let name = busy.randomElement(using: &random) else { continue }
                model.running.remove(name)
                model.probing.remove(name)
                let isLate = Bool.random(using: &random)
                let error = isLate ? RaceTests.superseded : RaceTests.refusal
                if !isLate { model.failed.insert(name) }
                note(race.failed(name, error, now: now), &model, names)
            case 7..<9:
                note(race.passed(now: now), &model, names)
            default:
                guard Int.random(in: 0..<8, using: &random) == 0 else { continue }
                note(race.abandon(now: now), &model, names)
                #expect(model.running.isEmpty && model.probing.isEmpty)
                if model.winner == nil { model.ends += 1 }
            }
            #expect(race.winner == model.winner)
            if model.winner == nil, model.ends == 0 {
                #expect(!model.running.isEmpty || race.deadline != nil, "a race that nobody is in has not ended")
            }
        }
    }

    private func note(_ actions: [Race.Action], _ model: inout Record, _ names: [TransportName]) {
        for action in actions {
            switch action {
            case .dial(let name, _):
                #expect(model.winner == nil && model.ends == 0, "dialled after the end")
                #expect(model.running.insert(name).inserted, "dialled twice at once")
                model.tried.insert(name)
            case .probe(let name):
                #expect(model.winner != nil)
                #expect(model.probing.isEmpty, "two learning dials at once (R41)")
                model.probing.insert(name)
                model.tried.insert(name)
            case .cancel(let name):
                #expect(model.running.contains(name) || model.probing.contains(name), "gave up what does not run")
                model.running.remove(name)
                model.probing.remove(name)
            case .win(let name):
                #expect(model.winner == nil && model.ends == 0)
                model.winner = name
            case .fail:
                #expect(model.winner == nil && model.running.isEmpty)
                model.ends += 1
                #expect(model.ends == 1, "ended twice (R45)")
            case .discard:
                break
            case .remember(let name):
                #expect(model.winner != nil, "remembered before anybody won")
                model.lastRemembered = name
                // R40: what is remembered has won after everything that would be preferred was tried, or would have.
                let preferred = names.prefix { $0 != name }
                if name == model.winner { #expect(preferred.allSatisfy { model.tried.contains($0) }) }
                #expect(model.tried.contains(name))
            }
        }
        // After the win whatever still runs only learns.
        if model.winner != nil { #expect(model.running.count <= 1, "more than one dial goes on to learn (R41)") }
    }
}
