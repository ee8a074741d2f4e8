internal import Foundation
internal import Synchronization

/// A link between two namespaces, and what it does to packets; docs/rig.md lists the settings.
package final class LinkShaper: Sendable {
    /// Which packets a setting is about. `a` is the end that was named first when the link was made.
    package enum Direction: String, Sendable {
        case aToB = "a>b"
        case bToA = "b>a"
        case both
    }

    /// What one direction has done so far.
    package struct Counters: Sendable, Decodable {
        package let packets, bytes, udp, tcp, other: Int
        package let delivered, deliveredBytes: Int
        package let lost, overflowed, blackholed, ruledOut, tooLong, undeliverable: Int
        package let duplicated, reordered, queued: Int
        package let lateMeanMicroseconds, lateWorstMicroseconds: Double
    }

    package struct RuleCounters: Sendable, Decodable {
        package let rule, dropped, flows: Int
    }

    package struct Report: Sendable, Decodable {
        package let aToB: Counters
        package let bToA: Counters
        package let rules: [RuleCounters]
        package let seed: UInt64
        package let milliseconds: Int

        private enum CodingKeys: String, CodingKey {
            case aToB = "a>b"
            case bToA = "b>a"
            case rules, seed, milliseconds
        }
    }

    /// A rule that drops packets until it is removed.
    package struct Rule: Sendable {
        let id: String
    }

    /// What chance began with; it is printed, and `RIG_SEED` repeats it.
    package let seed: UInt64
    private let program: Program
    /// How many answers were read.
    private let answered = Mutex(0)

    init(_ program: Program) async throws {
        self.program = program
        let ready = try await program.output.line(containing: "ready")
        guard let seed = ready.text.split(separator: "=").last.flatMap({ UInt64($0) }) else {
            throw RigFailure("the shaper said: \(ready.text)")
        }
        self.seed = seed
        answered.withLock { $0 = 1 }
        print("link shaper: seed \(seed)")
    }

    /// Performs one command and returns the answer. An answer that is an error is thrown.
    ///
    /// One task at a time may talk to a shaper.
    @discardableResult
    package func command(_ words: String) async throws -> String {
        let number = answered.withLock { answered in
            answered += 1
            return answered - 1
        }
        try program.write(words + "\n")
        let answer = try await program.output.line(from: number, within: .seconds(10), "an answer") { _ in true }.text
        guard !answer.hasPrefix("error") else { throw RigFailure("\(words): \(answer)") }
        return answer
    }

    /// Changes settings, for example `set(.both, "delay=20ms loss=1%")`; those that are not named stay.
    package func set(_ direction: Direction, _ settings: String) async throws {
        try await command("set \(direction.rawValue) \(settings)")
    }

    /// Lets everything vanish, or nothing any more.
    package func blackhole(_ direction: Direction = .both, _ isOn: Bool = true) async throws {
        try await command("blackhole \(direction.rawValue) \(isOn ? "on" : "off")")
    }

    /// Drops what matches, for example `drop(.both, "udp:443 larger=1200")`.
    package func drop(_ direction: Direction = .both, _ what: String) async throws -> Rule {
        let answer = try await command("drop \(direction.rawValue) \(what)")
        guard let id = answer.split(separator: "=").last else { throw RigFailure("the shaper said: \(answer)") }
        return Rule(id: String(id))
    }

    package func remove(_ rule: Rule) async throws {
        try await command("remove \(rule.id)")
    }

    /// Back to a link that delivers everything at once.
    package func reset() async throws {
        try await command("reset")
    }

    package func report() async throws -> Report {
        try JSONDecoder().decode(Report.self, from: Data(try await command("counters").utf8))
    }
}
