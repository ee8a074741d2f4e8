internal import DirectCarrier
internal import TransportIO
package import TransportKit

/// A trace under two pairs of policies, side by side.
package struct ReplayReport: Codable, Sendable {
    /// What a dial came to.
    package struct Result: Codable, Sendable {
        package var order: [String]
        package var standingBack: [String]
        package var winner: String?
        package var afterMilliseconds: Double?
        /// An outcome that the trace does not have was taken from another dial.
        package var isEstimated: Bool
    }

    /// One dial.
    package struct Dial: Codable, Sendable {
        package var time: Int64
        package var network: String
        package var destination: String
        /// What was recorded, then what each pair of policies makes of it.
        package var results: [Result]
    }

    /// A demotion that begins or ends.
    package struct Change: Codable, Sendable {
        package var time: Int64
        package var network: String
        package var destination: String
        package var transport: String
        package var until: Int64?
        package var reason: String?
    }

    /// What a pair of policies makes of the whole.
    package struct Summary: Codable, Sendable {
        package var race: String
        package var demotion: String
        package var carried: Int
        package var failed: Int
        package var byTransport: [String: Int]
        package var meanMilliseconds: Double?
        package var worstMilliseconds: Double?
        package var changes: [Change]
        package var unusedEndings: Int
    }

    /// A race policy and a demotion policy that are tried together.
    package typealias Policies = (race: any RacePolicy, demotion: any DemotionPolicy)

    package var dials: [Dial]
    package var summaries: [Summary]
    /// How many lines of the trace were left out, because they are none.
    package var skippedLines: Int
    /// The first of them, as `file:line`.
    package var firstSkipped: String?

    /// Plays a trace through two pairs of policies.
    package init(_ trace: Trace, _ pairs: [Policies]) {
        let observations = trace.observations
        (skippedLines, firstSkipped) = (trace.skippedLines, trace.firstSkipped)
        let outcomes = pairs.map { PathReplay.play(observations, race: $0.race, demotion: $0.demotion) }
        summaries = zip(pairs, outcomes).map { pair, outcome in Summary(pair.race.name, pair.demotion.name, outcome) }
        let recorded = observations.filter { observation in
            if case .dialled = observation.event { true } else { false }
        }.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
        dials = recorded.enumerated().map { index, observation in
            Dial(
                time: observation.time.seconds, network: observation.path.network,
                destination: observation.path.destination,
                results: [Result(observation)] + outcomes.map { Result($0.dials[index]) })
        }
    }

    /// The policies of these names.
    ///
    /// - Throws: a sentence with the names there are.
    package static func policies(race: [String], demotion: [String]) async throws -> [Policies] {
        try await HostProgram.withLoop { loop in
            let registry = try StandardRegistry.make(loop: loop)
            let context = BuildContext(executor: loop, time: loop)
            return try zip(race, demotion).map { race, demotion in
                guard registry.names.racePolicies.contains(race) else {
                    throw TraceError(GraphParts.unknown(race, kind: "race policy", among: registry.names.racePolicies))
                }
                guard registry.names.demotionPolicies.contains(demotion) else {
                    throw TraceError(
                        GraphParts.unknown(demotion, kind: "demotion policy", among: registry.names.demotionPolicies))
                }
                return (
                    try registry.makeRacePolicy(race, options: ConfigOptions.none, context: context),
                    try registry.makeDemotionPolicy(demotion, options: ConfigOptions.none, context: context)
                )
            }
        }
    }

    /// The report as one line of JSON.
    package var json: String { ControlCoding.printable(ControlCoding.line(self)) }

    /// The report as a person reads it, in 100 columns.
    package var lines: [String] {
        let names = ["recorded"] + summaries.map { "\($0.race), \($0.demotion)" }
        let start = dials.first?.time ?? 0
        var table = TextTable(["at", "network", "destination", "policies", "order", "carried by", "after"])
        for dial in dials {
            for (index, result) in dial.results.enumerated() {
                let place =
                    index == 0
                    ? ["+" + StatusText.span(dial.time - start), String(dial.network.prefix(8)), dial.destination]
                    : ["", "", ""]
                table.add(place + [names[index]] + result.cells)
            }
        }
        var lines = table.lines
        var totals = TextTable(["policies", "carried", "failed", "mean", "worst", "demotions", "by"])
        for (name, summary) in zip(names.dropFirst(), summaries) {
            let by = summary.byTransport.sorted { $0.key < $1.key }.map {
                "\(ReplayReport.display($0.key)) \($0.value)"
            }
            totals.add([
                name, "\(summary.carried)", "\(summary.failed)", Self.time(summary.meanMilliseconds),
                Self.time(summary.worstMilliseconds), "\(summary.changes.filter { $0.until != nil }.count)",
                by.joined(separator: ", "),
            ])
        }
        lines += [""] + totals.lines
        for (name, summary) in zip(names.dropFirst(), summaries) where !summary.changes.isEmpty {
            var changes = TextTable(["at", "network", "destination", name], indent: 0)
            for change in summary.changes {
                let what =
                    change.until.map { until in
                        "\(Self.display(change.transport)) stands back for \(StatusText.span(until - change.time)): "
                            + (change.reason ?? "")
                    } ?? "\(Self.display(change.transport)) stands back no longer"
                changes.add([
                    "+" + StatusText.span(change.time - start), String(change.network.prefix(8)), change.destination,
                    what,
                ])
            }
            lines += [""] + changes.lines
        }
        if dials.contains(where: { $0.results.contains { $0.isEstimated } }) {
            lines += ["", "~ the trace does not have what was needed; it was taken from the dial before"]
        }
        for (name, summary) in zip(names.dropFirst(), summaries) where summary.unusedEndings > 0 {
            lines += [
                "\(name): \(summary.unusedEndings) sessions were carried by another transport than recorded; "
                    + "how those would have ended is not known"
            ]
        }
        if let firstSkipped {
            let what =
                skippedLines == 1
                ? "1 line is none of a trace and was" : "\(skippedLines) lines are none of a trace and were"
            lines += ["", "\(what) left out; the first is \(firstSkipped.printable(limit: 400))"]
        }
        return lines.flatMap { $0.count > 100 ? TextTable.broken($0, at: 100) : [$0] }
    }

    fileprivate static func display(_ transport: String) -> String { TransportName(rawValue: transport).displayName }

    fileprivate static func time(_ milliseconds: Double?) -> String {
        milliseconds.map { "\(($0 * 10).rounded() / 10) ms" } ?? "–"
    }
}

extension ReplayReport.Result {
    fileprivate init(_ observation: PathObservation) {
        self.init(order: [], standingBack: [], isEstimated: false)
        guard case .dialled(_, let winner, let after, _) = observation.event else { return }
        self.winner = winner?.rawValue
        afterMilliseconds = after?.inMilliseconds
    }

    fileprivate init(_ dial: PathReplay.Dial) {
        self.init(
            order: dial.order.map(\.rawValue), standingBack: dial.standingBack.map(\.rawValue).sorted(),
            winner: dial.winner?.rawValue, afterMilliseconds: dial.after?.inMilliseconds,
            isEstimated: dial.isEstimated)
    }

    fileprivate var cells: [String] {
        [
            order.isEmpty ? "" : order.map(ReplayReport.display).joined(separator: ", "),
            winner.map(ReplayReport.display) ?? "nothing",
            (isEstimated ? "~" : "") + ReplayReport.time(afterMilliseconds),
        ]
    }
}

extension ReplayReport.Summary {
    fileprivate init(_ race: String, _ demotion: String, _ outcome: PathReplay.Outcome) {
        let carried = outcome.dials.compactMap { dial in dial.winner.map { ($0, dial.after?.inMilliseconds ?? 0) } }
        self.init(
            race: race, demotion: demotion, carried: carried.count, failed: outcome.dials.count - carried.count,
            byTransport: Dictionary(carried.map { ($0.0.rawValue, 1) }, uniquingKeysWith: +),
            meanMilliseconds: carried.isEmpty ? nil : carried.map(\.1).reduce(0, +) / Double(carried.count),
            worstMilliseconds: carried.map(\.1).max(),
            changes: outcome.changes.map { change in
                ReplayReport.Change(
                    time: change.time.seconds, network: change.path.network, destination: change.path.destination,
                    transport: change.transport.rawValue, until: change.demotion?.until.seconds,
                    reason: change.demotion.map { $0.reason.printable(limit: 400) })
            }, unusedEndings: outcome.unusedEndings)
    }
}
