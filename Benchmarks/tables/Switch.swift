internal import RigSupport

/// What a change of network costs a program that an application ticks through.
enum Switch {
    struct Row: Sendable {
        let loss: Int
        /// The widest gap between ticks over QUIC at each change, in milliseconds; those half a second around it count.
        let gaps: Spread
        /// How long the slowest tick took at each change, in milliseconds.
        let slowest: Spread
        let ticks: Int
        /// Ticks that did not come back.
        let lost: Int
        /// Whether the session outlived all changes.
        let keepsSession: Bool
        /// From each change to the first answer of a new session over WebSocket, in milliseconds.
        let reconnects: Spread
        let changes: Int
    }

    /// How many ticks go with a change, when it comes, and the ticks that are on their way about then.
    private static let (ticksPerChange, before, around) = (25, Duration.milliseconds(630), 5..<11)

    /// Measures at each loss in percent.
    static func measure(_ losses: [Int], changes: Int) async throws -> [Row] {
        var rows: [Row] = []
        for loss in losses {
            let (quic, lost, keepsSession) = try await overQUIC(loss, changes)
            let reconnects = try await overWebSocket(loss, changes)
            rows.append(
                Row(
                    loss: loss, gaps: Spread(quic.map(\.gap)), slowest: Spread(quic.map(\.slowest)),
                    ticks: changes * ticksPerChange, lost: lost,
                    keepsSession: keepsSession, reconnects: Spread(reconnects), changes: changes))
        }
        return rows
    }

    private static func withTunnel<Result>(
        _ loss: Int, _ transport: String, _ body: (Topology, Tunnel, Program) async throws -> Result
    ) async throws -> Result {
        try await withTopology(.secondNetwork) { net in
            for link in [net.link, try net.away.link] { try await link.set(.both, "delay=20ms loss=\(loss)%") }
            var options = Tunnel.Options()
            options.transports = "[\(transport)]"
            let tunnel = try await Tunnel(net, options)
            _ = try await tunnel.startServer()
            let client = try await tunnel.startClient()
            return try await body(net, tunnel, client)
        }
    }

    private static func overQUIC(
        _ loss: Int, _ changes: Int
    ) async throws -> (changes: [(gap: Double, slowest: Double)], lost: Int, keepsSession: Bool) {
        try await withTunnel(loss, "quic") { net, tunnel, client in
            var (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(20))
            // The last of the handshake, and the ids that moving takes.
            _ = try await Ticks.send(10, over: socket)
            let connections = tunnel.echo.connections
            var (taken, lost, keepsSession): ([(gap: Double, slowest: Double)], Int, Bool) = ([], 0, true)
            for change in 0..<changes {
                let (current, moved) = (socket, client.errors.count)
                async let sent = Ticks.send(ticksPerChange, over: current)
                try await Task.sleep(for: before)
                try await net.useNetwork(change.isMultiple(of: 2) ? net.away : net.home)
                do {
                    let ticks = try await sent.part(around)
                    taken.append((ticks.widestGap, ticks.slowest))
                    _ = try await client.errors.line(containing: " moves from ", from: moved)
                } catch {
                    // The session is lost, and with it what was under way.
                    (keepsSession, lost) = (false, lost + ticksPerChange)
                    let all = Ticks.interval.milliseconds * Double(ticksPerChange)
                    taken.append((all, all))
                    (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(20))
                }
            }
            return (taken, lost, keepsSession && tunnel.echo.connections == connections)
        }
    }

    private static func overWebSocket(_ loss: Int, _ changes: Int) async throws -> [Double] {
        try await withTunnel(loss, "websocket") { net, tunnel, _ in
            _ = try await tunnel.connectWhenUsable(within: .seconds(20))
            var reconnects: [Double] = []
            for change in 0..<changes {
                // What the last change began is over by then.
                try await Task.sleep(for: .milliseconds(1_500))
                try await net.useNetwork(change.isMultiple(of: 2) ? net.away : net.home)
                reconnects.append(try await tunnel.connectWhenUsable(within: .seconds(20)).after.milliseconds)
            }
            return reconnects
        }
    }
}

extension Switch {
    /// The rows beside the floor and the earlier system's figures.
    static func table(_ rows: [Row], earlier: Earlier) -> Table {
        var table = Table(
            name: "switch", title: "When the client's network changes",
            columns: ["loss", "over", "what", "median / worst", "floor", "earlier", "session", "ticks lost"])
        for row in rows {
            let figures = earlier.twoLegs("switch", loss: row.loss)
            table.rows.append([
                "\(row.loss) %", "QUIC", "widest gap between ticks", cell([row.gaps.median, row.gaps.worst]),
                cell(Ticks.interval.milliseconds), "", row.keepsSession ? "the same" : "lost",
                "\(row.lost) of \(row.ticks)",
            ])
            table.rows.append([
                "\(row.loss) %", "QUIC", "slowest tick, there and back", cell([row.slowest.median, row.slowest.worst]),
                cell(Connect.roundTrip), cell(figures?.quic), "", "",
            ])
            table.rows.append([
                "\(row.loss) %", "WebSocket", "change to answer", cell([row.reconnects.median, row.reconnects.worst]),
                cell(Way.webSocket.floor(.reconnect) * Connect.roundTrip), cell(figures?.webSocket), "a new one", "",
            ])
        }
        table.notes = [
            "Milliseconds, \(rows.first?.changes ?? 0) changes of the default route each, there and back, between two networks of \(cell(Connect.roundTrip)) ms round trip; the programs as built, a forward, a tick of one byte every \(cell(Ticks.interval.milliseconds)) ms.",
            "Of the ticks, the figures are those of the half second around the change: with loss, what they lost is in them too, whether by the change or not. The earlier system's figure over QUIC is the path's probe and switch, over WebSocket the first message of a new session, both behind a relay and 40 ms on each of two legs.",
        ]
        return table
    }

    /// What is wrong; empty where all is well.
    static func faults(_ rows: [Row]) -> [String] {
        rows.filter { $0.loss == 0 }.flatMap { row in
            [
                row.keepsSession ? nil : "a session over QUIC did not outlive a change of network",
                row.lost == 0 ? nil : "\(row.lost) of \(row.ticks) ticks were lost",
            ].compactMap { $0 }
        }
    }
}
