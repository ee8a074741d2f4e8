internal import Synchronization
internal import TransportKit

/// What a carrier's dials and sessions say about the paths they took: judged by its policy, kept in its memory.
///
/// A failure waits here as a suspicion until another transport has opened on the same path; a dial in which everything
/// failed drops it, since then the network is to blame. Any thread may call it.
final class PathLedger: Sendable {
    private struct Suspicion {
        /// As it was dialled: which network that is may turn out later.
        var path: PathKey
        var event: PathEvent
        var time: WallTime
        var reason: String
    }

    private let policy: any DemotionPolicy
    private let memory: any PathMemory
    private let time: any TimeSource
    private let log: Log
    private let destination: String
    private let random: @Sendable () -> Double
    /// The oldest first.
    private let suspicions = Mutex<[Suspicion]>([])

    /// How many of one path are kept …
    private static let pathLimit = 8
    /// … and how many of all.
    private static let limit = 512

    init(
        policy: any DemotionPolicy, context: BuildContext, destination: String,
        random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.policy = policy
        self.destination = destination
        self.random = random
        memory = context.memory
        time = context.time
        log = context.log
    }

    var policyName: String { policy.name }

    func standsBack(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool {
        policy.standsBack(transport, history: history, at: now)
    }

    /// How long a session has to stand before ``lasted(_:on:)``.
    var soundness: Duration? { policy.soundness }

    /// What the race policy gets to see.
    func record(of path: PathKey?) -> PathRecord {
        guard let path else { return PathRecord() }
        let now = time.wallNow()
        let suspects = suspicions.withLock { suspicions in
            suspicions.removeAll { $0.time + PathHistory.lifetime <= now && isSame($0.path, path) }
            return suspicions.filter { isSame($0.path, path) }
        }
        return memory.history(of: path, at: now).record(
            of: policy, suspects: Dictionary(suspects.map { ($0.event.transport, $0.reason) }) { $1 }, at: now)
    }

    /// Whether a transport that somebody else has beaten may be dialled to learn.
    func mayProbe(_ transport: TransportName, on path: PathKey) -> Bool {
        let now = time.wallNow()
        return policy.mayProbe(transport, history: memory.history(of: path, at: now), at: now)
    }

    /// When a transport that stands back is to be dialled to learn although nobody dials; nil for never.
    func nextProbe(_ transport: TransportName, on path: PathKey) -> WallTime? {
        let now = time.wallNow()
        return policy.nextProbe(transport, history: memory.history(of: path, at: now), at: now)
    }

    // MARK: - What happens

    /// A transport has opened the session that was wanted: what is suspected of the others is proven now.
    func opened(_ transport: TransportName, roundTrip: Duration?, on path: PathKey) {
        let now = time.wallNow()
        memory.change(path, at: now) { history in
            history.carried(transport, at: now)
            if let roundTrip { history.measured(roundTrip: roundTrip) }
        }
        settleSuspicions(on: path) { $0 != transport }
    }

    /// A transport deserves to go first on this path.
    func remember(_ transport: TransportName, on path: PathKey) {
        let now = time.wallNow()
        memory.change(path, at: now) { $0.won(transport, at: now) }
    }

    /// A session is over.
    func ended(_ ending: SessionEnding, on path: PathKey) {
        guard ending.blamesPath else { return }
        suspect(.ended(ending), because: "it broke: \(ending.close)", on: path)
    }

    /// A dial has failed.
    ///
    /// - Parameter carrier: what carries the session that was wanted; nil while nothing does.
    func failed(_ transport: TransportName, _ error: TransportError, carrier: TransportName?, on path: PathKey) {
        suspect(.failedToOpen(transport, error), because: "it did not open: \(error)", on: path)
        if carrier != nil { settleSuspicions(on: path) { $0 == transport } }
    }

    /// Everything has failed, so nothing is to blame for it but the network.
    func nothingOpened(on path: PathKey) {
        suspicions.withLock { suspicions in suspicions.removeAll { isSame($0.path, path) } }
    }

    /// A session has stood for as long as the policy wants.
    func lasted(_ transport: TransportName, on path: PathKey) {
        suspicions.withLock { suspicions in
            suspicions.removeAll { $0.event.transport == transport && isSame($0.path, path) }
        }
        settle(.lasted(transport), on: path, at: time.wallNow())
    }

    /// A dial to learn begins.
    func probing(_ transport: TransportName, on path: PathKey) {
        let now = time.wallNow()
        memory.change(path, at: now) { $0[transport].lastProbe = now }
    }

    /// A dial to learn got through its handshake.
    func probed(_ transport: TransportName, on path: PathKey) {
        settle(.probed(transport), on: path, at: time.wallNow())
    }

    // MARK: - Judging

    /// Whether two paths are one, as far as the names of their networks have been told apart.
    private func isSame(_ one: PathKey, _ other: PathKey) -> Bool {
        guard one != other else { return true }
        guard one.destination == other.destination, let kept = memory.kept(one) else { return false }
        return kept == memory.kept(other)
    }

    private func suspect(_ event: PathEvent, because reason: String, on path: PathKey) {
        // Which network is to blame nobody can say any more.
        guard memory.kept(path) != nil else { return }
        let now = time.wallNow()
        var history = PathHistory()
        memory.change(path, at: now) { changed in
            changed[event.transport].lastFailure = now
            history = changed
        }
        // What would follow from it decides whether it is a suspicion at all.
        guard policy.judge(event, history: history, at: now, fraction: 0) != .sound else { return }
        suspicions.withLock { suspicions in
            suspicions.append(Suspicion(path: path, event: event, time: now, reason: reason))
            let same = suspicions.indices.filter { isSame(suspicions[$0].path, path) }
            if same.count > Self.pathLimit { suspicions.remove(at: same[0]) }
            if suspicions.count > Self.limit { suspicions.removeFirst() }
        }
    }

    /// Settles what is suspected of the transports that `isProven` names.
    private func settleSuspicions(on path: PathKey, of isProven: (TransportName) -> Bool) {
        let proven = suspicions.withLock { suspicions in
            let proven = suspicions.filter { isProven($0.event.transport) && isSame($0.path, path) }
            suspicions.removeAll { isProven($0.event.transport) && isSame($0.path, path) }
            return proven
        }
        for suspicion in proven { settle(suspicion.event, on: path, at: suspicion.time) }
    }

    /// Judges an event that is proven, and writes down what follows.
    private func settle(_ event: PathEvent, on path: PathKey, at moment: WallTime) {
        guard memory.kept(path) != nil else { return }
        var verdict = Verdict.sound
        let (fraction, transport) = (random(), event.transport)
        var wasDemoted = false
        memory.change(path, at: time.wallNow()) { history in
            wasDemoted = history[transport].demotion != nil
            verdict = policy.judge(event, history: history, at: moment, fraction: fraction)
            history.apply(verdict, to: transport, at: moment)
        }
        tell(verdict, about: transport, wasDemoted: wasDemoted)
    }

    private func tell(_ verdict: Verdict, about transport: TransportName, wasDemoted: Bool) {
        let what = "\(destination): \(transport.displayName)"
        switch verdict {
        case .sound: break
        case .strike(let strike): log.info("\(what) is held to have failed on this network once: \(strike.reason)")
        case .demote(let lifetime, _, let reason):
            log.warning("\(what) stands back on this network for \(lifetime.inWords): \(reason)")
        case .lift where wasDemoted: log.info("\(what) stands back no longer: it opens again")
        case .clear where wasDemoted: log.info("\(what) stands back no longer: it has proven sound")
        case .lift, .clear: break
        }
    }
}
