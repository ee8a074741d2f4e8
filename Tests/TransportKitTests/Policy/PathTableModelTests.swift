import Testing
import TransportKit
import TransportKitTesting

/// Random changes, pauses and jumps of the clock against a plain list of what was written down (R48, R54–R59).
@Suite struct PathTableModelTests {
    /// One thing that somebody wrote down about a transport.
    private struct Note: Equatable {
        enum Kind {
            case won, demoted, failed
        }

        var kind: Kind
        var transport: TransportName
        var since: Int
        var until: Int
    }

    /// One destination on one network.
    private struct Row {
        var network: String
        var destination: String
        var changed: Int
        var notes: [Note]
        /// Lasts as long as the row.
        var roundTrip: Int?
    }

    /// What the requirements say of a memory, as a list.
    private struct Model {
        static let day = 86_400

        var rows: [Row] = []

        /// Nothing has happened later than now (R54), nothing lasts beyond its end, nothing is older than a day (R56).
        mutating func look(at now: Int) {
            for row in rows.indices {
                rows[row].changed = min(rows[row].changed, now)
                rows[row].notes = rows[row].notes.compactMap { note in
                    // What only tells when something happened is no use where the clock says that it did not yet.
                    if note.since > now, note.kind == .failed { return nil }
                    let ahead = max(note.since - now, 0)
                    var cut = note
                    cut.since -= ahead
                    cut.until -= ahead
                    return cut.until > now ? cut : nil
                }
            }
            rows.removeAll { $0.changed + Self.day <= now || ($0.notes.isEmpty && $0.roundTrip == nil) }
        }

        /// Writes something down in place of the same about the same; there is one winner.
        mutating func write(_ note: Note, _ network: String, _ destination: String, at now: Int) {
            var row =
                take(network, destination)
                ?? Row(network: network, destination: destination, changed: now, notes: [])
            row.notes.removeAll { $0.kind == note.kind && ($0.transport == note.transport || note.kind == .won) }
            row.notes.append(note)
            row.changed = now
            rows.append(row)
        }

        mutating func measure(_ roundTrip: Int, _ network: String, _ destination: String, at now: Int) {
            var row =
                take(network, destination)
                ?? Row(network: network, destination: destination, changed: now, notes: [])
            row.roundTrip = roundTrip
            row.changed = now
            rows.append(row)
        }

        mutating func take(_ network: String, _ destination: String) -> Row? {
            let index = rows.firstIndex { $0.network == network && $0.destination == destination }
            return index.map { rows.remove(at: $0) }
        }

        func notes(_ network: String, _ destination: String) -> [Note] {
            rows.first { $0.network == network && $0.destination == destination }?.notes ?? []
        }

        func lastChange(of network: String) -> Int {
            rows.filter { $0.network == network }.map(\.changed).max() ?? .min
        }
    }

    private struct Difference: Error, CustomStringConvertible {
        let description: String
    }

    @Test func `10,000 random memories keep what was written, for a day, on the networks used last`() throws {
        var random = SeededGenerator.announced()
        // R56: the limit itself is no part of the rules, and a small one is met more often.
        for _ in 0..<10_000 {
            let limit = Int.random(in: 1...4, using: &random)
            try play(&random, steps: 12, limit: limit, networks: limit + 2, destinations: 2)
        }
        // Within an hour or two the real ones are met.
        for (networks, destinations) in [(120, 1), (1, 120)] {
            let dropped = try play(
                &random, steps: 450, limit: PathTable.networkLimit, networks: networks, destinations: destinations,
                isCalm: true)
            #expect(dropped > 0)
        }
    }

    /// - Returns: how much was dropped for lack of room.
    @discardableResult
    private func play(
        _ random: inout SeededGenerator, steps: Int, limit: Int, networks: Int, destinations: Int,
        isCalm: Bool = false
    ) throws -> Int {
        var table = PathTable(limit: limit)
        var model = Model()
        var now = 1_000_000_000
        var dropped = 0
        for _ in 0..<steps {
            let path = PathKey(
                network: "n\(Int.random(in: 0..<networks, using: &random))",
                destination: "d\(Int.random(in: 0..<destinations, using: &random))")
            let transport: TransportName = Bool.random(using: &random) ? .quic : .webSocket
            let step = Int.random(in: 0..<20, using: &random)
            switch step {
            case 0..<4: now += Int.random(in: 1...90, using: &random)
            case 4 where !isCalm: now += Int.random(in: 3000...40_000, using: &random)
            case 5 where !isCalm: now += [86_399, 86_400, 43_200].randomElement(using: &random) ?? 0
            case 6 where !isCalm:
                now += [-63_072_000, -90_000, -3600, -1, 63_072_000].randomElement(using: &random) ?? 0
            default: break
            }
            let clock = WallTime(seconds: Int64(now))
            model.look(at: now)
            switch step {
            case 7..<12:
                table.change(path, at: clock) { $0.won(transport, at: clock) }
                // R49: no win moves one that stands back.
                let standsBack = model.notes(path.network, path.destination).contains {
                    $0.kind == .demoted && $0.transport == transport
                }
                if standsBack {
                    touch(path, &model, now)
                } else {
                    let note = Note(kind: .won, transport: transport, since: now, until: now + Model.day)
                    model.write(note, path.network, path.destination, at: now)
                }
            case 12..<15:
                let lifetime = [100, 1800, 86_400].randomElement(using: &random) ?? 0
                table.change(path, at: clock) { history in
                    history.apply(
                        .demote(lifetime: .seconds(lifetime), kind: .carrying, reason: ""), to: transport, at: clock)
                    // These two outlive the demotion; other tests have them.
                    history[transport].isUnproven = false
                    history[transport].demotionsInARow = 0
                }
                let note = Note(kind: .demoted, transport: transport, since: now, until: now + lifetime)
                model.write(note, path.network, path.destination, at: now)
            case 15:
                let roundTrip = Int.random(in: 1..<100, using: &random)
                table.change(path, at: clock) { $0.smoothedRoundTrip = .milliseconds(roundTrip) }
                model.measure(roundTrip, path.network, path.destination, at: now)
            case 16..<18:
                table.change(path, at: clock) { $0[transport].lastFailure = clock }
                let note = Note(kind: .failed, transport: transport, since: now, until: now + Model.day)
                model.write(note, path.network, path.destination, at: now)
            case 18:
                // R54: a restart of the host.
                table = PathTable(table.entries, limit: limit, at: clock)
            default:
                let known = Self.notes(table.history(of: path, at: clock))
                try same(known, model.notes(path.network, path.destination), path, at: now)
            }
            let kept = table.all(at: clock)
            let known = model.rows.count
            try evict(&model, toward: kept, changed: path.network, limit: limit)
            dropped += known - model.rows.count
            if !isCalm || step == 0 { try compare(kept, model, at: now) }
        }
        return dropped
    }

    /// A change that changes nothing is one all the same.
    private func touch(_ path: PathKey, _ model: inout Model, _ now: Int) {
        guard var row = model.take(path.network, path.destination) else { return }
        row.changed = now
        model.rows.append(row)
    }

    /// Beyond the limits what has not changed for the longest goes, and never what was just written. Where several have
    /// not changed for equally long, which of them goes is nobody's business.
    private func evict(
        _ model: inout Model, toward kept: [PathKey: PathHistory], changed network: String, limit: Int
    ) throws {
        let networks = Set(model.rows.map(\.network))
        let crowded = model.rows.filter { $0.network == network }
        if crowded.count > PathTable.destinationLimit {
            let oldest = crowded.map(\.changed).min()
            let gone = crowded.filter { row in
                kept[PathKey(network: row.network, destination: row.destination)] == nil
            }
            guard gone.count == 1, gone[0].changed == oldest, gone[0].destination != model.rows.last?.destination else {
                throw Difference(description: "the wrong destinations went: \(gone.map(\.destination))")
            }
            _ = model.take(gone[0].network, gone[0].destination)
        }
        guard networks.count > limit else { return }
        let gone = networks.subtracting(kept.keys.map(\.network))
        let oldest = networks.map { model.lastChange(of: $0) }.min()
        guard let lost = gone.first, gone.count == 1, lost != network, model.lastChange(of: lost) == oldest else {
            throw Difference(description: "of \(networks.count) networks \(gone) went, and \(network) had changed last")
        }
        model.rows.removeAll { $0.network == lost }
    }

    private func compare(_ kept: [PathKey: PathHistory], _ model: Model, at now: Int) throws {
        guard kept.count == model.rows.count else {
            throw Difference(description: "\(kept.count) paths are kept instead of \(model.rows.count)")
        }
        for row in model.rows {
            let path = PathKey(network: row.network, destination: row.destination)
            try same(kept[path].map(Self.notes) ?? [], row.notes, path, at: now)
            guard kept[path]?.smoothedRoundTrip == row.roundTrip.map({ .milliseconds($0) }) else {
                throw Difference(description: "at \(now) \(path) has another round trip than \(row.roundTrip ?? 0) ms")
            }
        }
    }

    private func same(_ actual: [Note], _ expected: [Note], _ path: PathKey, at now: Int) throws {
        let isSame = actual.count == expected.count && actual.allSatisfy { expected.contains($0) }
        guard isSame else {
            throw Difference(description: "at \(now) \(path) has \(actual) instead of \(expected)")
        }
    }

    private static func notes(_ history: PathHistory) -> [Note] {
        var notes: [Note] = []
        if let winner = history.winner {
            notes.append(
                Note(
                    kind: .won, transport: winner.transport, since: Int(winner.since.seconds),
                    until: Int(winner.until.seconds))
            )
        }
        for (name, transport) in history.transports {
            if let demotion = transport.demotion {
                notes.append(
                    Note(
                        kind: .demoted, transport: name, since: Int(demotion.since.seconds),
                        until: Int(demotion.until.seconds))
                )
            }
            if let failure = transport.lastFailure {
                let time = Int(failure.seconds)
                notes.append(Note(kind: .failed, transport: name, since: time, until: time + Model.day))
            }
        }
        return notes
    }
}
