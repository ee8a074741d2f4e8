internal import TransportKit

/// An observation of a carrier as one line of JSON. Times are seconds of the wall clock since 1970.
struct TraceLine: Codable {
    enum Event: String, Codable {
        case dial
        case end
    }

    struct Candidate: Codable {
        enum Outcome: String, Codable {
            case opened
            case failed
            case unknown
        }

        var transport: String
        var outcome: Outcome
        var tookMilliseconds: Double?
        var error: String?
        var message: String?
    }

    var event: Event
    var time: Int64
    var network: String
    var destination: String
    var dial: String

    // Of a dial.
    var transports: [Candidate]?
    var winner: String?
    var afterMilliseconds: Double?
    var roundTripMilliseconds: Double?

    // Of an end.
    var transport: String?
    var code: UInt64?
    var origin: String?
    var cause: String?
    var reason: String?
    var sinceFirstMessageMilliseconds: Double?
    var migrated: Bool?
}

extension TraceLine {
    private static let origins: [(String, Close.Origin)] = [
        ("local", .local), ("remote", .remote), ("path", .path), ("cancellation", .cancellation),
    ]

    init(_ observation: PathObservation) {
        time = observation.time.seconds
        network = observation.path.network
        destination = observation.path.destination
        dial = observation.dial
        switch observation.event {
        case .dialled(let candidates, let winner, let after, let roundTrip):
            event = .dial
            transports = candidates.map(Candidate.init)
            self.winner = winner?.rawValue
            afterMilliseconds = after?.inMilliseconds
            roundTripMilliseconds = roundTrip?.inMilliseconds
        case .ended(let ending):
            event = .end
            transport = ending.transport.rawValue
            code = ending.close.code.rawValue
            origin = Self.origins.first { $0.1 == ending.close.origin }?.0
            cause = ending.close.cause.map { "\($0.code)" }
            reason = ending.close.reason.printable(limit: 400)
            sinceFirstMessageMilliseconds = ending.sinceFirstMessage?.inMilliseconds
            migrated = ending.migrated ? true : nil
        }
    }

    /// The longest that any name may be, in bytes: a host name has 253.
    private static let nameLimit = 512

    /// The observation; nil where the line does not say enough, or more than any host would.
    var observation: PathObservation? {
        let names = [network, destination, dial, transport ?? "", winner ?? ""] + (transports ?? []).map(\.transport)
        guard (0...1 << 40).contains(time), names.allSatisfy({ $0.utf8.count <= Self.nameLimit }) else { return nil }
        let event: PathObservation.Event
        switch self.event {
        case .dial:
            guard let transports, (1...Trace.transportLimit).contains(transports.count),
                Set(transports.map(\.transport)).count == transports.count
            else { return nil }
            event = .dialled(
                transports.map(\.candidate), winner: winner.map { TransportName(rawValue: $0) },
                after: Duration(milliseconds: afterMilliseconds),
                roundTrip: Duration(milliseconds: roundTripMilliseconds))
        case .end:
            guard let transport, let code, let origin = Self.origins.first(where: { $0.0 == origin })?.1 else {
                return nil
            }
            let cause = self.cause.flatMap(TransportError.Code.init(name:)).map { TransportError($0, reason ?? "") }
            let close = Close(CloseCode(rawValue: code), reason: reason ?? "", origin: origin, cause: cause)
            event = .ended(
                SessionEnding(
                    transport: TransportName(rawValue: transport), close: close,
                    sinceFirstMessage: Duration(milliseconds: sinceFirstMessageMilliseconds),
                    migrated: migrated ?? false))
        }
        return PathObservation(
            time: WallTime(seconds: time), path: PathKey(network: network, destination: destination), dial: dial,
            event: event)
    }
}

extension TraceLine.Candidate {
    fileprivate init(_ candidate: PathObservation.Candidate) {
        transport = candidate.transport.rawValue
        tookMilliseconds = candidate.took?.inMilliseconds
        switch candidate.outcome {
        case .opened: outcome = .opened
        case .failed(let failure):
            outcome = .failed
            error = "\(failure.code)"
            message = failure.message.printable(limit: 400)
        case .unknown: outcome = .unknown
        }
    }

    fileprivate var candidate: PathObservation.Candidate {
        let outcome: PathObservation.Candidate.Outcome =
            switch self.outcome {
            case .opened: .opened
            case .failed:
                .failed(
                    TransportError(error.flatMap(TransportError.Code.init(name:)) ?? .system, message ?? "it failed"))
            case .unknown: .unknown
            }
        return PathObservation.Candidate(
            TransportName(rawValue: transport), outcome, took: Duration(milliseconds: tookMilliseconds))
    }
}

extension Duration {
    /// A number from a file; nil for none, and for one that is longer than ten years or negative.
    fileprivate init?(milliseconds: Double?) {
        guard let milliseconds, (0...3.2e11).contains(milliseconds) else { return nil }
        self = .microseconds(Int64(milliseconds * 1000))
    }
}
