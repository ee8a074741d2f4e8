internal import Synchronization
internal import TransportKit

/// One establishment under way. Confined to its carrier.
final class Establishment {
    enum Outcome {
        case won(DirectSocket)
        case failed(Close)
        /// The network is back: dial anew.
        case restart
        /// Whoever wanted the session was cancelled.
        case abandoned
    }

    let id: UInt64
    /// Tells it from every other, also from those of other carriers, other hosts and earlier runs.
    let name: String
    var race: Race
    let key: PathKey?
    let began: WallTime
    /// What the memory said when it began.
    let record: PathRecord
    let firstFlight: Bytes?
    /// Whether it was begun beside the question whether the sessions that stand still work.
    let isSpare: Bool
    let plannedStarts: [TransportName: Duration]
    /// Given when there is an outcome.
    let settled = Signal()
    var outcome: Outcome?
    var tasks: [TransportName: Task<Void, Never>] = [:]
    var timer: Task<Void, Never>?
    /// Gives up what goes on although somebody else answers in the service's place.
    var hurry: Task<Void, Never>?
    /// What the timer is set to.
    var armed: Instant?
    var holdsLearning = false
    var isLogged = false
    private var claims: [Int: Claim] = [:]
    private var steps: [TransportName: DialSteps] = [:]

    init(
        id: UInt64, carrier: String, race: Race, plan: [Attempt], key: PathKey?, began: WallTime, record: PathRecord,
        firstFlight: Bytes?, isSpare: Bool
    ) {
        self.isSpare = isSpare
        self.id = id
        name = "\(began.seconds)-\(carrier)-\(id)"
        self.race = race
        self.key = key
        self.began = began
        self.record = record
        self.firstFlight = firstFlight
        plannedStarts = Dictionary(plan.map { ($0.transport, $0.delay) }) { first, _ in first }
    }

    /// Whether nothing more will happen.
    var isDone: Bool { outcome != nil && !race.isLearning && tasks.isEmpty }

    var allSteps: [TransportName: [EstablishmentReport.Step]] { steps.mapValues(\.all) }

    func claim(of generation: Int) -> Claim {
        if let claim = claims[generation] { return claim }
        let claim = Claim()
        claims[generation] = claim
        return claim
    }

    func steps(of transport: TransportName) -> DialSteps {
        if let known = steps[transport] { return known }
        let new = DialSteps()
        steps[transport] = new
        return new
    }
}

/// The steps of one dial, added on the transport's loop.
final class DialSteps: Sendable {
    // A name with very many addresses must not fill the memory.
    private static let limit = 64

    private let kept = Mutex<[EstablishmentReport.Step]>([])

    var all: [EstablishmentReport.Step] { kept.withLock { $0 } }

    func add(_ progress: DialProgress, at time: Duration) {
        kept.withLock { kept in
            if kept.count < Self.limit { kept.append(EstablishmentReport.Step(time: time, progress: progress)) }
        }
    }
}
