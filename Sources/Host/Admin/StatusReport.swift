internal import FallbackCarrier
internal import TransportKit

/// What a running host says of itself. Times are seconds of the wall clock since 1970.
package struct StatusReport: ControlAnswer, Sendable {
    /// A carrier.
    package struct Carrier: Codable, Sendable {
        package var name: String
        /// `idle`, `connecting`, `connected`, `waiting` or `closed`.
        package var state: String
        /// The same as a person reads it: "Connected · QUIC".
        package var text: String
        package var transport: String?
        package var remoteAddress: String?
        package var since: Int64
        package var nextAttemptInSeconds: Double?
        package var url: String?
        /// Which of the carriers below carries: `direct`, `tunnel`, `relay`.
        package var through: String?
        /// Of a fallback.
        package var fallback: Fallback?
    }

    /// Which of the two carriers of a fallback is in force.
    package struct Fallback: Codable, Sendable {
        package var carrier: String
        /// The one that it took over from; nil where the primary is in force.
        package var from: String?
        package var since: Int64?
        package var why: String?
    }

    /// What is known of a destination on a network.
    package struct Path: Codable, Sendable {
        /// The opaque name of the network.
        package var network: String
        package var isCurrent: Bool
        package var destination: String
        package var winner: String?
        package var winnerSince: Int64?
        package var winnerUntil: Int64?
        package var roundTripMilliseconds: Double?
        package var demotions: [Demotion]
    }

    /// A transport that stands back.
    package struct Demotion: Codable, Sendable {
        package var transport: String
        package var since: Int64
        package var until: Int64
        package var reason: String
        /// The policy lets it be dialled as if it were sound, because the other transport is in doubt.
        package var isSuspended: Bool?
    }

    /// A local port.
    package struct Forward: Codable, Sendable {
        package var listen: String
        package var to: String
        package var carrier: String
        /// `listening`, or `port taken`.
        package var state: String
        package var open: Int
        package var total: Int
        package var failed: Int
    }

    /// A listener.
    package struct Listener: Codable, Sendable {
        package var name: String
        package var url: String
        package var transports: [String]
        package var sessions: Int
        package var total: Int
    }

    /// The host as a box.
    package struct Box: Codable, Sendable {
        /// The id of its home.
        package var home: String
        /// How it is linked to its door, as a person reads it: "Connected · QUIC".
        package var door: String
        package var isLinked: Bool
        /// Since when it is as it is.
        package var since: Int64
        package var devices: Int
        package var sessions: Int
        package var services: [String]
    }

    package var version: String
    package var pid: Int32
    package var config: String
    package var now: Int64
    package var uptimeSeconds: Int64
    package var state: String?
    /// The opaque name of the network that the machine is on.
    package var network: String?
    package var carriers: [Carrier]
    package var paths: [Path]
    package var forwards: [Forward]
    package var listeners: [Listener]
    package var box: Box?
}

extension StatusReport.Carrier {
    init(_ name: String, _ note: StatusBoard.CarrierNote, now: Instant) {
        self.init(name: name, state: "idle", text: "\(note.state)".printable(limit: 400), since: note.since.seconds)
        switch note.state {
        case .idle: break
        case .connecting:
            self.state = "connecting"
            if let failure = note.failure { text = "\(note.state) · after \(failure)".printable(limit: 400) }
        case .open(let path):
            self.state = "connected"
            transport = path.transport.rawValue
            remoteAddress = path.remoteAddress.map { "\($0)" }
            through = path.carrier.isEmpty ? nil : path.carrier.printable(limit: 100)
        case .waiting(let until, _):
            self.state = "waiting"
            nextAttemptInSeconds = max((until - now).inMilliseconds / 1000, 0)
        case .closed: self.state = "closed"
        }
    }
}

extension StatusReport.Fallback {
    init(_ carrier: FallbackCarrier) {
        self.carrier = carrier.current
        guard let takeover = carrier.takeover else { return }
        self.carrier = takeover.to
        from = takeover.from
        since = takeover.time.seconds
        why = "\(takeover.reason)".printable(limit: 400)
    }
}

extension StatusReport.Path {
    init(_ key: PathKey, _ history: PathHistory, isCurrent: Bool) {
        network = key.network
        self.isCurrent = isCurrent
        destination = key.destination
        winner = history.winner?.transport.rawValue
        winnerSince = history.winner?.since.seconds
        winnerUntil = history.winner?.until.seconds
        roundTripMilliseconds = history.smoothedRoundTrip?.inMilliseconds
        demotions = history.transports.compactMap { transport, known in
            known.demotion.map { StatusReport.Demotion(transport, $0) }
        }.sorted { $0.transport < $1.transport }
    }
}

extension StatusReport.Demotion {
    init(_ transport: TransportName, _ demotion: Demotion) {
        self.transport = transport.rawValue
        since = demotion.since.seconds
        until = demotion.until.seconds
        reason = demotion.reason.printable(limit: 400)
    }
}
