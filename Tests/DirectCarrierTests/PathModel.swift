import Synchronization
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// What happens on a path, in the order in which a carrier's ledger hears of it.
enum PathStep {
    case opened(TransportName)
    case failed(TransportName, TransportError, carrier: TransportName?)
    case nothingOpened
    case probing
    /// A dial to learn got through.
    case probed
    case remember(TransportName)
    case ended(SessionEnding)
    case lasted(TransportName)
}

/// What the requirements say of one network, as a record of plain facts; it knows QUIC and the WebSocket.
protocol PathModel: SendableMetatype {
    init()

    /// Whether QUIC goes last in a dial, whoever is remembered.
    func standsBack(at now: Int) -> Bool
    /// Whether QUIC may be dialled only to learn.
    func mayProbe(at now: Int) -> Bool
    /// - Parameter fraction: what chance says.
    mutating func see(_ step: PathStep, at now: Int, fraction: Double)
    /// The host was stopped and started.
    mutating func restart()
    /// Until when QUIC is demoted.
    func demotedUntil(at now: Int) -> Int?
    /// Who is remembered.
    func winner(at now: Int) -> TransportName?
}

extension PathModel {
    /// Who goes first in a dial (R37, R48).
    func first(at now: Int) -> TransportName {
        standsBack(at: now) ? .webSocket : winner(at: now) ?? .quic
    }
}

/// Where the ledger and the record of plain facts do not agree.
struct ModelDifference: Error, CustomStringConvertible {
    let description: String
}

/// Plays random dials, sessions, pauses and restarts on two networks to a ledger and to a model at once.
struct PathModelPlayer<Model: PathModel> {
    private static var names: [TransportName] { [.quic, .webSocket] }

    private let policy: any DemotionPolicy
    private let time = ManualTime()
    private let memory = InProcessPathMemory()
    private let fraction = Fraction()
    private var ledger: PathLedger
    private var models = ["home": Model(), "office": Model()]
    private var story: [(time: Int, network: String, step: PathStep?)] = []
    /// How often QUIC was found demoted, so that a game in which nothing happens is noticed.
    private(set) var demotions = 0

    private final class Fraction: Sendable {
        private let value = Mutex(0.0)
        var current: Double {
            get { value.withLock { $0 } }
            set { value.withLock { $0 = newValue } }
        }
    }

    init(_ policy: any DemotionPolicy) {
        self.policy = policy
        ledger = Self.ledger(policy, time, memory, fraction)
    }

    private static func ledger(
        _ policy: any DemotionPolicy, _ time: ManualTime, _ memory: InProcessPathMemory, _ fraction: Fraction
    ) -> PathLedger {
        PathLedger(
            policy: policy, context: BuildContext(executor: ManualExecutor(), time: time, memory: memory),
            destination: "door", random: { fraction.current })
    }

    mutating func play(_ random: inout SeededGenerator, rounds: Int) throws {
        for _ in 0..<rounds {
            time.advance(by: .seconds(Chances.pauses.randomElement(using: &random) ?? 0))
            // Fractions whose products are whole numbers of seconds, to a double too.
            fraction.current = [0, 0.5, 1].randomElement(using: &random) ?? 0
            let network = Int.random(in: 0..<4, using: &random) == 0 ? "office" : "home"
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<12: try dial(on: network, &random)
            case 12..<17: try tell(.ended(Self.ending(&random)), on: network)
            case 17..<19: try tell(.lasted(Bool.random(using: &random) ? .quic : .webSocket), on: network)
            default:
                story.append((now, "", nil))
                ledger = Self.ledger(policy, time, memory, fraction)
                for name in models.keys { models[name]?.restart() }
            }
        }
    }

    private static func key(_ network: String) -> PathKey { PathKey(network: network, destination: "door") }

    private var now: Int { Int(time.wallNow().seconds) }

    // MARK: - What happens

    /// A dial by the rules of the race: the second is dialled where the first fails, QUIC only to learn where it is beaten.
    private mutating func dial(on network: String, _ random: inout SeededGenerator) throws {
        guard let model = models[network] else { return }
        let path = Self.key(network)
        let record = ledger.record(of: path)
        guard (record.demotions[.quic] != nil) == model.standsBack(at: now) else {
            throw difference("QUIC \(model.standsBack(at: now) ? "does not stand" : "stands") back")
        }
        let plan = HeadStartRacePolicy().plan(Self.names, record: record).map(\.transport)
        guard plan.first == model.first(at: now), Set(plan) == Set(Self.names) else {
            throw difference("the order is \(plan), and \(model.first(at: now)) should go first")
        }
        let quic = Bool.random(using: &random) ? nil : Self.error(&random)
        let webSocket = Int.random(in: 0..<4, using: &random) > 0 ? nil : Self.error(&random)
        if plan.first == .quic {
            switch (quic, webSocket) {
            case (nil, _):
                try tell(.opened(.quic), .remember(.quic), on: network)
            case (let quic?, nil) where Bool.random(using: &random):
                // It was silent; what it goes on to learn comes after the win.
                try tell(.opened(.webSocket), .remember(.webSocket), on: network)
                if Bool.random(using: &random) {
                    try tell(.failed(.quic, quic, carrier: .webSocket), .remember(.webSocket), on: network)
                } else {
                    try tell(.probed, .remember(.quic), on: network)
                }
            case (let quic?, nil):
                try tell(
                    .failed(.quic, quic, carrier: nil), .opened(.webSocket), .remember(.webSocket), on: network)
            case (let quic?, let webSocket?):
                try tell(
                    .failed(.quic, quic, carrier: nil), .failed(.webSocket, webSocket, carrier: nil), .nothingOpened,
                    on: network)
            }
            return
        }
        if let webSocket {
            try tell(.failed(.webSocket, webSocket, carrier: nil), on: network)
            if let quic {
                try tell(.failed(.quic, quic, carrier: nil), .nothingOpened, on: network)
            } else {
                try tell(.opened(.quic), .remember(.quic), on: network)
            }
            return
        }
        try tell(.opened(.webSocket), on: network)
        let mayProbe = ledger.mayProbe(.quic, on: path)
        guard mayProbe == (models[network]?.mayProbe(at: now) ?? false) else {
            throw difference("a probe is \(mayProbe ? "" : "not ")made")
        }
        guard mayProbe else { return }
        try tell(.probing, on: network)
        if let quic {
            try tell(.failed(.quic, quic, carrier: .webSocket), .remember(.webSocket), on: network)
        } else {
            try tell(.probed, .remember(.quic), on: network)
        }
    }

    private static func error(_ random: inout SeededGenerator) -> TransportError {
        let code = Chances.errors.randomElement(using: &random) ?? .timedOut
        return TransportError(code, code.description)
    }

    private static func ending(_ random: inout SeededGenerator) -> SessionEnding {
        let close = Close(
            CloseCode(rawValue: Chances.codes.randomElement(using: &random) ?? 0),
            origin: Chances.origins.randomElement(using: &random) ?? .path,
            cause: (Chances.causes.randomElement(using: &random) ?? nil).map { TransportError($0, "why") })
        return SessionEnding(
            transport: Int.random(in: 0..<4, using: &random) == 0 ? .webSocket : .quic, close: close,
            sinceFirstMessage: (Chances.ages.randomElement(using: &random) ?? nil).map { .milliseconds($0) },
            migrated: Int.random(in: 0..<8, using: &random) == 0)
    }

    // MARK: - Both hear of it

    private mutating func tell(_ steps: PathStep..., on network: String) throws {
        let path = Self.key(network)
        for step in steps {
            story.append((now, network, step))
            switch step {
            case .opened(let transport): ledger.opened(transport, roundTrip: nil, on: path)
            case .failed(let transport, let error, let carrier):
                ledger.failed(transport, error, carrier: carrier, on: path)
            case .nothingOpened: ledger.nothingOpened(on: path)
            case .probing: ledger.probing(.quic, on: path)
            case .probed: ledger.probed(.quic, on: path)
            case .remember(let transport): ledger.remember(transport, on: path)
            case .ended(let ending): ledger.ended(ending, on: path)
            case .lasted(let transport): ledger.lasted(transport, on: path)
            }
            let (now, chance) = (now, fraction.current)
            models[network]?.see(step, at: now, fraction: chance)
        }
        try compare(network)
    }

    private mutating func compare(_ network: String) throws {
        guard let model = models[network] else { return }
        let known = memory.history(of: Self.key(network), at: time.wallNow())
        let until = known[.quic].demotion.map { Int($0.until.seconds) }
        if until != nil { demotions += 1 }
        guard until == model.demotedUntil(at: now) else {
            throw difference(
                "QUIC is demoted until \(until ?? 0) instead of \(model.demotedUntil(at: now) ?? 0)")
        }
        guard known.winner?.transport == model.winner(at: now) else {
            throw difference(
                "\(known.winner?.transport ?? "nobody") is remembered instead of \(model.winner(at: now) ?? "nobody")"
            )
        }
        // Nothing is ever held against the WebSocket.
        guard known[.webSocket].demotion == nil, known[.webSocket].strikes.isEmpty else {
            throw difference("something is held against the WebSocket")
        }
    }

    private func difference(_ what: String) -> ModelDifference {
        let lines = story.map { "\($0.time) \($0.network): \($0.step.map { "\($0)" } ?? "the host was restarted")" }
        return ModelDifference(description: (["\(now): \(what), after"] + lines).joined(separator: "\n  "))
    }
}

/// What chance chooses from: the edges of every rule, and what happens most.
private enum Chances {
    static let pauses = [0, 0, 0, 1, 59, 60, 240, 299, 300, 599, 600, 1800, 3599, 3600, 40_000, 86_399, 86_400]
    static let errors: [TransportError.Code] = [
        .timedOut, .timedOut, .refused, .blocked, .unreachable, .handshakeFailed, .noCommonProtocol, .idle,
        .certificateExpired, .pinMismatch, .resources, .nameNotFound,
    ]
    static let codes: [UInt64] = [0, 12, 999, 1000, 1001, 1003, 1005, 1006, 1006, 1006, 1006, 1011, 4403, 4999]
    static let origins: [Close.Origin] = [.path, .path, .path, .remote, .remote, .local, .cancellation]
    static let causes: [TransportError.Code?] = [nil, nil, .idle, .idle, .pathReset, .refused, .forgotten]
    static let ages: [Int?] = [nil, 0, 30_000, 59_999, 60_000, 299_999, 300_000, 7_200_000]
}
