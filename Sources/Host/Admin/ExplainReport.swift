internal import DirectCarrier
internal import TransportKit

/// What happened while a carrier opened its last sessions.
package struct ExplainReport: ControlAnswer, Sendable {
    /// What the memory said when an establishment began.
    package struct Memory: Codable, Sendable {
        package var winner: String?
        package var demotions: [StatusReport.Demotion]
        package var unproven: [String]
        package var roundTripMilliseconds: Double?
    }

    /// An address that was dialled.
    package struct Attempt: Codable, Sendable {
        package var address: String
        /// Counted from the start of the establishment.
        package var startMilliseconds: Double
        package var error: String?
    }

    /// One transport's part. What it took is nil where it never came so far.
    package struct Candidate: Codable, Sendable {
        package var transport: String
        package var plannedStartMilliseconds: Double
        package var startMilliseconds: Double?
        package var endMilliseconds: Double?
        package var outcome: String
        package var attempts: [Attempt]
        package var resolveMilliseconds: Double?
        package var connectMilliseconds: Double?
        package var tlsMilliseconds: Double?
        package var openMilliseconds: Double?
    }

    /// One establishment.
    package struct Establishment: Codable, Sendable {
        package var began: Int64
        /// The opaque name of the network, where it has one.
        package var network: String?
        package var memory: Memory
        package var candidates: [Candidate]
        package var winner: String?
        package var failure: String?
        package var why: String
    }

    package var carrier: String
    package var state: String
    package var now: Int64
    package var url: String?
    package var race: String?
    package var demotion: String?
    /// Oldest first.
    package var establishments: [Establishment]
}

extension ExplainReport.Establishment {
    init(_ report: EstablishmentReport) {
        began = report.began.seconds
        network = report.network
        memory = ExplainReport.Memory(report.record)
        candidates = report.candidates.map { ExplainReport.Candidate($0) }
        winner = report.winner?.rawValue
        failure = report.failure.map { "\($0)".printable(limit: 1000) }
        why = report.why.printable(limit: 1000)
    }
}

extension ExplainReport.Memory {
    init(_ record: PathRecord) {
        winner = record.winner?.rawValue
        demotions = record.demotions.map { StatusReport.Demotion($0.key, $0.value) }
            .sorted { $0.transport < $1.transport }
        unproven = record.unproven.map(\.rawValue).sorted()
        roundTripMilliseconds = record.smoothedRoundTrip?.inMilliseconds
    }
}

extension ExplainReport.Candidate {
    init(_ candidate: EstablishmentReport.Candidate) {
        transport = candidate.transport.rawValue
        plannedStartMilliseconds = candidate.plannedStart.inMilliseconds
        startMilliseconds = candidate.start?.inMilliseconds
        endMilliseconds = candidate.end?.inMilliseconds
        outcome = "\(candidate.outcome)".printable(limit: 1000)
        if candidate.start == nil, candidate.outcome == .cancelled { outcome = "was not needed" }
        attempts = []
        var last = candidate.start
        for step in candidate.steps {
            let since = last.map { (step.time - $0).inMilliseconds }
            switch step.progress {
            case .resolved: resolveMilliseconds = since
            case .attempt(let address):
                attempts.append(
                    ExplainReport.Attempt(address: "\(address)", startMilliseconds: step.time.inMilliseconds))
            case .attemptFailed(let address, let error):
                if let index = attempts.lastIndex(where: { $0.address == "\(address)" }) {
                    attempts[index].error = "\(error)".printable(limit: 400)
                }
                continue
            case .connected(let address):
                let start = attempts.last { $0.address == "\(address)" }?.startMilliseconds
                connectMilliseconds = start.map { step.time.inMilliseconds - $0 } ?? since
            case .measured: continue
            case .secured: tlsMilliseconds = since
            case .opened: openMilliseconds = since
            }
            last = step.time
        }
    }
}
