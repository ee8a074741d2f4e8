package import TransportKit

/// Plays recorded observations through a race policy and a demotion policy, in simulated time and with the same race and
/// ledger that a carrier uses. A pure function of its input.
package struct PathReplay {
    /// What would have become of one dial.
    package struct Dial: Sendable, Hashable {
        /// When it was.
        package var time: WallTime
        /// Where it was.
        package var path: PathKey
        /// What would have been dialled, in the order of the plan.
        package var order: [TransportName]
        /// What would have stood back.
        package var standingBack: Set<TransportName>
        /// What would have carried the session; nil where nothing opens.
        package var winner: TransportName?
        /// After how long; of a dial that failed, when that was known.
        package var after: Duration?
        /// An outcome that the trace does not have was taken from another dial.
        package var isEstimated: Bool
    }

    /// A demotion that began or ended.
    package struct Change: Sendable, Hashable {
        /// When.
        package var time: WallTime
        /// Where.
        package var path: PathKey
        /// What it is about.
        package var transport: TransportName
        /// The demotion that has begun; nil where one has ended.
        package var demotion: Demotion?
    }

    /// What came of it.
    package struct Outcome: Sendable {
        /// The dials in the order of their times.
        package var dials: [Dial] = []
        /// What stood back from when to when.
        package var changes: [Change] = []
        /// Sessions whose end says nothing, because another transport would have carried them.
        package var unusedEndings = 0
    }

    private let race: any RacePolicy
    private let demotion: any DemotionPolicy
    private let time: ManualTime
    private let memory = InProcessPathMemory()
    private let ledger: PathLedger
    private var outcome = Outcome()
    private var winners: [Session: (transport: TransportName, opened: WallTime)] = [:]
    private var known: [Place: [TransportName: Known]] = [:]
    /// What has opened and may still prove sound by standing, in the order of opening.
    private var standing: [(session: Session, opened: WallTime)] = []
    private var firstStanding = 0
    /// What stands back, as far as it was noted.
    private var demotions: [PathKey: [TransportName: Demotion]] = [:]
    /// When that ends at the latest, the next one last.
    private var ends: [(time: WallTime, path: PathKey)] = []

    /// A path, which transports answer on alike from one dial to the next.
    private typealias Place = PathKey

    /// A dial and what it has opened. Its end names the same path: traces from before dials had names of their own in the
    /// whole file are told apart by that as well as they can be.
    private struct Session: Hashable {
        var path: PathKey
        var dial: String

        init(_ observation: PathObservation) {
            path = observation.path
            dial = observation.dial
        }
    }

    private struct Known {
        var opens: Bool
        var took: Duration
        var error: TransportError?
    }

    /// Plays `observations`, in whatever order they were written down.
    package static func play(
        _ observations: [PathObservation], race: any RacePolicy, demotion: any DemotionPolicy
    ) -> Outcome {
        let sorted = observations.enumerated().sorted { left, right in
            let (a, b) = (left.element, right.element)
            if a.time != b.time { return a.time < b.time }
            // A session that ended in the second of its dial ended after it.
            if a.isDial != b.isDial { return a.isDial }
            return left.offset < right.offset
        }.map(\.element)
        guard let first = sorted.first, let last = sorted.last else { return Outcome() }
        var replay = PathReplay(race: race, demotion: demotion, start: first.time)
        replay.look(at: sorted)
        for observation in sorted { replay.take(observation) }
        replay.settleLasting(before: last.time)
        replay.noteEnds(at: last.time)
        return replay.outcome
    }

    private init(race: any RacePolicy, demotion: any DemotionPolicy, start: WallTime) {
        self.race = race
        self.demotion = demotion
        time = ManualTime(wall: start)
        let context = BuildContext(executor: NoExecutor(), time: time, memory: memory)
        // The middle of what chance might say, so that the same trace always gives the same answer.
        ledger = PathLedger(policy: demotion, context: context, destination: "", random: { 0.5 })
    }

    /// What each transport does where a dial does not show it: first what the first dial shows that does.
    private mutating func look(at observations: [PathObservation]) {
        for observation in observations.reversed() { learn(observation) }
    }

    private mutating func learn(_ observation: PathObservation) {
        guard case .dialled(let candidates, _, _, _) = observation.event else { return }
        for candidate in candidates {
            guard let took = candidate.took else { continue }
            switch candidate.outcome {
            case .opened: known[observation.path, default: [:]][candidate.transport] = Known(opens: true, took: took)
            case .failed(let error):
                known[observation.path, default: [:]][candidate.transport] = Known(
                    opens: false, took: took, error: error)
            case .unknown: break
            }
        }
    }

    private mutating func take(_ observation: PathObservation) {
        settleLasting(before: observation.time)
        time.setWall(max(observation.time, time.wallNow()))
        noteEnds(at: observation.time)
        learn(observation)
        switch observation.event {
        case .dialled(let candidates, _, _, let roundTrip): dial(observation, candidates, roundTrip)
        case .ended(let ending):
            guard let winner = winners.removeValue(forKey: Session(observation)) else { break }
            if winner.transport == ending.transport {
                ledger.ended(ending, on: observation.path)
            } else {
                outcome.unusedEndings += 1
            }
        }
        noteChanges(on: observation.path, at: observation.time)
    }

    /// Sessions that have stood for as long as the policy wants count as sound from then on.
    private mutating func settleLasting(before now: WallTime) {
        guard let soundness = demotion.soundness else { return }
        while firstStanding < standing.count, standing[firstStanding].opened + soundness <= now {
            let (session, opened) = standing[firstStanding]
            firstStanding += 1
            // It has ended since, or its name was given to another.
            guard let winner = winners[session], winner.opened == opened else { continue }
            time.setWall(max(opened + soundness, time.wallNow()))
            noteEnds(at: time.wallNow())
            ledger.lasted(winner.transport, on: session.path)
            noteChanges(on: session.path, at: time.wallNow())
        }
    }

    /// A session has opened. One whose dial took longer may have opened after one that was dialled later.
    private mutating func stand(_ session: Session, _ transport: TransportName, since opened: WallTime) {
        winners[session] = (transport, opened)
        var place = standing.count
        while place > firstStanding, standing[place - 1].opened > opened { place -= 1 }
        standing.insert((session, opened), at: place)
    }

    // MARK: - One dial

    private mutating func dial(
        _ observation: PathObservation, _ candidates: [PathObservation.Candidate], _ roundTrip: Duration?
    ) {
        let path = observation.path
        let names = candidates.map(\.transport)
        let record = ledger.record(of: path)
        let plan = race.plan(names, record: record)
        var run = Run(race: Race(names, plan: plan, now: .zero))
        var isEstimated = false
        let mayLearn = names.allSatisfy { ledger.mayProbe($0, on: path) }
        var actions = run.race.passed(now: .zero)
        while true {
            for action in actions {
                switch action {
                case .dial(let transport, _), .probe(let transport):
                    if case .probe = action { ledger.probing(transport, on: path) }
                    let (result, isKnown) = self.result(of: transport, candidates, path)
                    if !isKnown, run.race.winner == nil { isEstimated = true }
                    // What nobody has ever seen is silent for as long as a dial may take.
                    run.pending[transport] = (run.now + (result?.took ?? .seconds(10)), result)
                case .cancel(let transport): run.pending[transport] = nil
                case .win(let transport):
                    ledger.opened(transport, roundTrip: roundTrip, on: path)
                    stand(Session(observation), transport, since: observation.time + (run.now - .zero))
                    run.end = run.now
                case .fail:
                    ledger.nothingOpened(on: path)
                    run.end = run.now
                case .remember(let transport): ledger.remember(transport, on: path)
                case .discard: break
                }
            }
            let next = run.pending.min { ($0.value.at, $0.key.rawValue) < ($1.value.at, $1.key.rawValue) }
            if let deadline = run.race.deadline, next.map({ deadline <= $0.value.at }) ?? true {
                run.now = deadline
                actions = run.race.passed(now: deadline)
            } else if let (transport, value) = next {
                run.pending[transport] = nil
                run.now = value.at
                actions = finish(transport, value.result, &run, mayLearn: mayLearn, on: path)
            } else {
                break
            }
        }
        outcome.dials.append(
            Dial(
                time: observation.time, path: path, order: run.race.entries.map(\.transport),
                standingBack: Set(record.demotions.keys), winner: run.race.winner, after: run.end.map { $0 - .zero },
                isEstimated: isEstimated))
    }

    /// A dial has opened or failed: what the carrier does then.
    private func finish(
        _ transport: TransportName, _ result: Known?, _ run: inout Run, mayLearn: Bool, on path: PathKey
    ) -> [Race.Action] {
        if let result, result.opens {
            guard run.race.winner == nil else {
                ledger.probed(transport, on: path)
                return run.race.failed(transport, TransportError(.superseded, ""), now: run.now)
            }
            return run.race.opened(transport, mayLearn: mayLearn, now: run.now)
        }
        let error = result?.error ?? TransportError(.timedOut, "no answer")
        ledger.failed(transport, error, carrier: run.race.winner, on: path)
        return run.race.failed(transport, error, now: run.now)
    }

    private struct Run {
        var race: Race
        var now = Instant.zero
        var end: Instant?
        var pending: [TransportName: (at: Instant, result: Known?)] = [:]
    }

    private func result(
        of transport: TransportName, _ candidates: [PathObservation.Candidate], _ path: PathKey
    ) -> (Known?, isKnown: Bool) {
        guard let candidate = candidates.first(where: { $0.transport == transport }) else { return (nil, false) }
        switch (candidate.outcome, candidate.took) {
        case (.opened, let took?): return (Known(opens: true, took: took), true)
        case (.failed(let error), let took?): return (Known(opens: false, took: took, error: error), true)
        case (_, let took):
            guard var other = known[path]?[transport] else { return (nil, false) }
            // It had not answered for at least as long as it was dialled.
            if let took { other.took = max(other.took, took) }
            return (other, false)
        }
    }

    // MARK: - Demotions

    /// Notes what has begun or ended on a path.
    private mutating func noteChanges(on path: PathKey, at now: WallTime) {
        let before = demotions[path, default: [:]]
        let after = memory.history(of: path, at: now).transports.compactMapValues(\.demotion)
        for (transport, demotion) in after where before[transport] != demotion {
            outcome.changes.append(Change(time: demotion.since, path: path, transport: transport, demotion: demotion))
            let place = ends.partitioningIndex { $0.time <= demotion.until }
            ends.insert((demotion.until, path), at: place)
        }
        for (transport, demotion) in before where after[transport] == nil {
            outcome.changes.append(
                Change(time: min(demotion.until, now), path: path, transport: transport, demotion: nil))
        }
        demotions[path] = after.isEmpty ? nil : after
    }

    /// Notes what has ended by itself, in the order in which it did.
    private mutating func noteEnds(at now: WallTime) {
        while let end = ends.last, end.time <= now {
            ends.removeLast()
            noteChanges(on: end.path, at: now)
        }
    }
}

extension PathObservation {
    fileprivate var isDial: Bool {
        if case .dialled = event { true } else { false }
    }
}

extension [(time: WallTime, path: PathKey)] {
    /// The first place from which on `isBehind` holds.
    fileprivate func partitioningIndex(where isBehind: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// Nothing runs in a replay.
private final class NoExecutor: SerialExecutor, TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) { preconditionFailure("a replay runs nothing") }
}
