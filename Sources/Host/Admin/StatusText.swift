internal import TransportKit

/// Reports as a person reads them, in 100 columns.
package enum StatusText {
    /// The answer to `transportkit status`.
    package static func lines(_ report: StatusReport) -> [String] {
        let now = report.now
        var head = "transportkit \(report.version), process \(report.pid), up \(span(report.uptimeSeconds))"
        head += ", \(report.config)"
        var lines = TextTable.broken(head.printable(limit: 1000), at: 100)
        lines.append("network " + (report.network.map(short) ?? "that cannot be told from others"))
        section(["carrier", "for", "peer", "state"], &lines) { table in
            for carrier in report.carriers {
                var text = carrier.text
                if let seconds = carrier.nextAttemptInSeconds { text += "; next attempt in \(seconds.short) s" }
                if let fallback = carrier.fallback { text += standing(fallback, now: now) }
                let peer = [carrier.remoteAddress, carrier.url].compactMap(\.self).joined(separator: " · ")
                table.add([carrier.name, span(from: carrier.since, to: now), peer, text])
            }
        }
        section(["network (* now)", "destination", "won last", "when", "round trip", "stands back"], &lines) { table in
            for path in report.paths {
                table.add([
                    short(path.network) + (path.isCurrent ? " *" : ""), path.destination,
                    path.winner.map(display) ?? "–", path.winnerSince.map { span(from: $0, to: now) + " ago" } ?? "–",
                    path.roundTripMilliseconds.map { "\($0.short) ms" } ?? "–",
                    standing(path.demotions, now: now),
                ])
            }
        }
        section(["forward", "through", "state", "open", "so far", "failed", "to"], &lines) { table in
            for forward in report.forwards {
                table.add([
                    forward.listen, forward.carrier, forward.state, "\(forward.open)", "\(forward.total)",
                    "\(forward.failed)", forward.to,
                ])
            }
        }
        section(["listener", "over", "sessions", "so far", "at"], &lines) { table in
            for listener in report.listeners {
                table.add([
                    listener.name, listener.transports.map(display).joined(separator: ", "), "\(listener.sessions)",
                    "\(listener.total)", listener.url,
                ])
            }
        }
        section(["box", "for", "door", "devices", "sessions", "services"], &lines) { table in
            guard let box = report.box else { return }
            table.add([
                box.home, span(from: box.since, to: now), box.door, "\(box.devices)", "\(box.sessions)",
                box.services.joined(separator: ", "),
            ])
        }
        return lines
    }

    /// The answer to `transportkit explain`.
    package static func lines(_ report: ExplainReport) -> [String] {
        let policies = [report.race.map { "race \($0)" }, report.demotion.map { "demotion \($0)" }].compactMap(\.self)
        let head = ["carrier \(report.carrier)", report.url, report.state] + policies
        let words = head.compactMap(\.self).joined(separator: " · ")
        var lines = TextTable.broken(words.printable(limit: 1000), at: 100)
        if report.url == nil { lines.append("it dials nothing itself: ask for the carrier that it is built over") }
        if report.url != nil, report.establishments.isEmpty { lines.append("nothing has been dialled yet") }
        for establishment in report.establishments {
            lines.append("")
            lines += explain(establishment, now: report.now)
        }
        return lines
    }

    private static func explain(_ establishment: ExplainReport.Establishment, now: Int64) -> [String] {
        let network =
            establishment.network.map { "network \(short($0))" } ?? "a network that cannot be told from others"
        var lines = ["\(span(from: establishment.began, to: now)) ago, on \(network)"]
        var facts = TextTable(["  memory", memory(establishment.memory, now: now)])
        facts.add(["  why", establishment.why])
        lines += facts.lines
        var table = TextTable(
            ["transport", "start", "resolve", "connect", "TLS", "open", "end", "address", "outcome"], indent: 2)
        for candidate in establishment.candidates {
            table.add([
                display(candidate.transport), time(candidate.startMilliseconds), time(candidate.resolveMilliseconds),
                time(candidate.connectMilliseconds), time(candidate.tlsMilliseconds), time(candidate.openMilliseconds),
                time(candidate.endMilliseconds), candidate.attempts.last?.address ?? "–", candidate.outcome,
            ])
            for attempt in candidate.attempts.dropLast() {
                table.add([
                    "", time(attempt.startMilliseconds), "", "", "", "", "", attempt.address,
                    attempt.error.map { "failed: \($0)" } ?? "",
                ])
            }
        }
        return lines + table.lines
    }

    private static func memory(_ memory: ExplainReport.Memory, now: Int64) -> String {
        var facts = memory.winner.map { ["\(display($0)) won last"] } ?? []
        facts += memory.demotions.map { standing([$0], now: now) }
        facts += memory.unproven.filter { name in !memory.demotions.contains { $0.transport == name } }
            .map { "\(display($0)) has not proven itself since it stood back" }
        if let milliseconds = memory.roundTripMilliseconds { facts.append("round trip \(milliseconds.short) ms") }
        return facts.isEmpty ? "nothing was known of this network" : facts.joined(separator: "; ")
    }

    private static func section(
        _ head: [String], _ lines: inout [String], _ fill: (inout TextTable) -> Void
    ) {
        var table = TextTable(head)
        fill(&table)
        guard !table.isEmpty else { return }
        lines.append("")
        lines += table.lines
    }

    private static func standing(_ fallback: StatusReport.Fallback, now: Int64) -> String {
        guard let from = fallback.from, let since = fallback.since else { return "; through \(fallback.carrier)" }
        let words = "; through \(fallback.carrier), which took over from \(from) \(span(from: since, to: now)) ago"
        return words + (fallback.why.map { ": \($0)" } ?? "")
    }

    private static func standing(_ demotions: [StatusReport.Demotion], now: Int64) -> String {
        guard !demotions.isEmpty else { return "–" }
        return demotions.map { demotion in
            let suspended = demotion.isSuspended == true ? " (suspended: the other failed a moment ago)" : ""
            let left = span(from: now, to: demotion.until)
            return "\(display(demotion.transport)) for another \(left)\(suspended): \(demotion.reason)"
        }.joined(separator: "; ")
    }

    private static func display(_ transport: String) -> String { TransportName(rawValue: transport).displayName }

    /// Enough of an opaque name to tell a few dozen apart.
    private static func short(_ network: String) -> String { String(network.prefix(8)).printable(limit: 16) }

    private static func time(_ milliseconds: Double?) -> String { milliseconds.map { "\($0.short)" } ?? "–" }

    /// The stretch between two points of somebody else's clock, which may be any numbers.
    private static func span(from start: Int64, to end: Int64) -> String {
        let (seconds, isTooLong) = end.subtractingReportingOverflow(start)
        return span(isTooLong ? (start < 0 ? .max : 0) : seconds)
    }

    /// A stretch of time in its two largest units: `3 d 4 h`.
    package static func span(_ seconds: Int64) -> String {
        let seconds = max(seconds, 0)
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60)
        if days > 0 { return "\(days) d \(hours) h" }
        if hours > 0 { return "\(hours) h \(minutes) min" }
        return minutes > 0 ? "\(minutes) min \(seconds % 60) s" : "\(seconds) s"
    }
}

extension Double {
    /// With one decimal, and without one from 100 on.
    fileprivate var short: String {
        guard self >= 100 else { return "\((self * 10).rounded() / 10)" }
        return Int64(exactly: rounded()).map { "\($0)" } ?? "\(self)"
    }
}
