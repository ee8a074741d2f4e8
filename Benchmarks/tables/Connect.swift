internal import DirectCarrier
internal import RigSupport
internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// How a client reaches the door.
enum Way: String, Sendable, CaseIterable {
    case webSocket
    case quic
    case race

    var title: String {
        switch self {
        case .webSocket: "WebSocket"
        case .quic: "QUIC"
        case .race: "race"
        }
    }

    /// Round trips to the first answer that nothing can do without.
    ///
    /// QUIC: its handshake, the echo. WebSocket: TCP, TLS 1.3, the upgrade, the echo; with a ticket the upgrade could
    /// travel as early data.
    func floor(_ what: Connect.What) -> Double {
        switch (self, what) {
        case (_, .request): 1
        case (.webSocket, .cold): 4
        case (.webSocket, .reconnect): 3
        case (.quic, _), (.race, _): 2
        }
    }
}

/// How long it takes from the beginning of a dial to the first answer, over the client's one shaped leg.
struct Connect: Sendable {
    /// The link's, in milliseconds.
    static let roundTrip = 40.0

    /// What is timed.
    enum What: String, Sendable, CaseIterable {
        /// From the beginning of a dial to the first answer; no TLS ticket, nothing known of the network.
        case cold
        /// One more message on that session, to its answer.
        case request
        /// As `cold`, right after that session was closed.
        case reconnect
    }

    /// What one way cost at one loss, in milliseconds.
    struct Row: Sendable {
        let loss: Int
        let way: Way
        let times: [What: Spread]
        /// How many reconnects resumed TLS.
        let resumed: Int
    }

    private struct Sample {
        var times: [What: Double] = [:]
        var isResumed = false
    }

    private let door: Door
    private let loop: EventLoop

    /// Measures `samples` of each way at each loss in percent; the ways take turns.
    static func measure(_ losses: [Int], samples: Int) async throws -> [Row] {
        try await withTopology { net in
            let connect = Connect(door: try await Door(net), loop: try await net.client.makeLoop())
            // Neighbours become known, and code is loaded.
            for way in Way.allCases { _ = try await connect.sample(way) }
            var rows: [Row] = []
            for loss in losses {
                try await net.link.set(.both, "delay=20ms loss=\(loss)%")
                var taken: [Way: [Sample]] = [:]
                for _ in 0..<samples {
                    for way in Way.allCases { taken[way, default: []].append(try await connect.sample(way)) }
                }
                for way in Way.allCases {
                    let taken = taken[way] ?? []
                    let pairs = What.allCases.map { what in (what, Spread(taken.compactMap { $0.times[what] })) }
                    rows.append(
                        Row(
                            loss: loss, way: way, times: Dictionary(uniqueKeysWithValues: pairs),
                            resumed: taken.count(where: \.isResumed)))
                }
            }
            return rows
        }
    }

    private func sample(_ way: Way) async throws -> Sample {
        let task = Task(executorPreference: loop) { try await dialTwice(way) }
        return try await task.value
    }

    /// Connects as a program does that knows nothing yet, loses that session, and connects again.
    private func dialTwice(_ way: Way) async throws -> Sample {
        TLSTicketStore.shared.removeAll()
        var options = DialOptions()
        options.security.trust = .file(door.certificate)
        let all = transports(on: loop)
        let context = BuildContext(executor: loop, time: loop, network: { "home" })
        let carrier = try DirectCarrier(
            url: door.url, transports: way == .race ? all : all.filter { $0.name == way.transport }, options: options,
            context: context)
        var sample = Sample()
        var begun = loop.now()
        let first = try await carrier.open(firstFlight: nil)
        try await Self.ask(first)
        sample.times[.cold] = (loop.now() - begun).milliseconds
        begun = loop.now()
        try await Self.ask(first)
        sample.times[.request] = (loop.now() - begun).milliseconds
        async let closed = first.close()
        begun = loop.now()
        let second = try await carrier.open(firstFlight: nil)
        try await Self.ask(second)
        sample.times[.reconnect] = (loop.now() - begun).milliseconds
        sample.isResumed = second.info.resumed
        _ = await closed
        await carrier.close()
        return sample
    }

    /// Sends a message and waits for its answer.
    private static func ask(_ socket: any Socket) async throws {
        try await socket.send(Message(Bytes("are you there?")))
        _ = try await socket.receive()
    }
}

extension Way {
    /// The one transport; nil where they race.
    fileprivate var transport: TransportName? {
        switch self {
        case .webSocket: .webSocket
        case .quic: .quic
        case .race: nil
        }
    }
}

extension Connect {
    /// The rows beside the floor and the earlier system's figures.
    static func table(_ rows: [Row], samples: Int, earlier: Earlier) -> Table {
        var table = Table(
            name: "connect", title: "Connects and requests",
            columns: [
                "loss", "what", "over", "p50 / p95", "p50 in round trips", "floor", "TLS resumed",
                "earlier, one leg", "earlier, two legs",
            ])
        for (row, what) in rows.flatMap({ row in What.allCases.map { (row, $0) } }) {
            guard let times = row.times[what] else { continue }
            table.rows.append([
                "\(row.loss) %", what.rawValue, row.way.title, cell([times.median, times.percentile(0.95)]),
                cell(times.median / roundTrip, digits: 2), cell(row.way.floor(what) * roundTrip),
                what == .reconnect ? "\(row.resumed) of \(samples)" : "",
                cell(earlier.oneLeg(row.way, what, loss: row.loss)),
                cell(earlier.twoLegs(row.way, what, loss: row.loss)),
            ])
        }
        table.notes = [
            "Milliseconds, \(samples) of each, one leg of \(cell(roundTrip)) ms round trip; the loss is each packet's, both ways.",
            "cold: from the beginning of a dial to the first answer, with no TLS ticket and nothing known of the network. request: one more message, to its answer. reconnect: as cold, right after that session was closed.",
            "earlier, one leg: \(earlier.oneLeg.conditions).",
            "earlier, two legs: \(earlier.twoLegs.conditions).",
        ]
        return table
    }

    /// What is off by a round trip where nothing is lost; empty where all is well. The limits have room for a slow machine.
    static func faults(_ rows: [Row], samples: Int) -> [String] {
        let rows = rows.filter { $0.loss == 0 }
        // R26
        var faults = rows.filter { $0.resumed < samples }.map { row in
            "of \(samples) reconnects by \(row.way.title) \(row.resumed) resumed TLS"
        }
        func expect(_ what: String, _ median: Double, below limit: Double) {
            let trips = median / roundTrip
            guard trips >= limit else { return }
            faults.append(
                "\(what) takes \(cell(trips, digits: 2)) round trips, where less than \(cell(limit, digits: 2)) are right"
            )
        }
        for what in What.allCases {
            var medians: [Way: Double] = [:]
            for row in rows { medians[row.way] = row.times[what]?.median }
            guard let webSocket = medians[.webSocket], let quic = medians[.quic], let race = medians[.race] else {
                faults.append("nothing was measured without loss")
                continue
            }
            expect("\(what.rawValue) over QUIC", quic, below: Way.quic.floor(what) + 0.6)
            // A ticket saves no round trip without early data.
            expect("\(what.rawValue) over WebSocket", webSocket, below: what == .request ? 1.6 : 4.6)
            expect("\(what.rawValue) by the race", race, below: min(webSocket, quic) / roundTrip + 0.5)
        }
        return faults
    }
}
