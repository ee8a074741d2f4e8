import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// The `day` policy and the ledger in front of it, against the requirements as a record of plain facts (R37, R46–R54).
@Suite struct DayModelTests {
    private struct Model: PathModel {
        static let day = 86_400

        /// When QUIC has failed without anybody having carried since.
        var failures: [Int] = []
        var demotedUntil = Int.min
        var remembered: (transport: TransportName, until: Int)?

        func demotedUntil(at now: Int) -> Int? { demotedUntil > now ? demotedUntil : nil }

        // R55
        func winner(at now: Int) -> TransportName? {
            remembered.flatMap { $0.until > now ? $0.transport : nil }
        }

        // R48; a suspect goes last too, since the proof may be a dial away.
        func standsBack(at now: Int) -> Bool {
            failures.contains { $0 + Self.day > now } || demotedUntil > now
        }

        func mayProbe(at now: Int) -> Bool { true }

        mutating func see(_ step: PathStep, at now: Int, fraction: Double) {
            switch step {
            case .ended(let ending):
                if ending.transport == .quic, Self.counts(ending) { failures.append(now) }
            case .opened(.webSocket):
                // R54: a further failure restarts the day.
                if let last = failures.last { demotedUntil = last + Self.day }
                failures = []
            case .nothingOpened:
                failures = []
            case .remember(let transport):
                // R49
                if transport == .quic, demotedUntil > now { return }
                remembered = (transport, now + Self.day)
            case .lasted(.quic):
                failures = []
            case .opened, .failed, .probing, .probed, .lasted:
                break
            }
        }

        // R54
        mutating func restart() { failures = [] }

        private static func counts(_ ending: SessionEnding) -> Bool {
            let code = ending.close.code.rawValue
            // R50
            guard code < 1000 || code == 1005 || code == 1006 else { return false }
            guard ending.close.origin == .remote || ending.close.origin == .path else { return false }
            if let cause = ending.close.cause?.code, cause == .refused || cause == .forgotten { return false }
            // R54
            guard !ending.migrated else { return false }
            // R46, R47, R52
            guard let age = ending.sinceFirstMessage else { return true }
            return age < .seconds(60)
        }
    }

    @Test func `10,000 random histories of the day policy are what R46 to R54 say`() throws {
        var random = SeededGenerator.announced()
        var demotions = 0
        for _ in 0..<10_000 {
            var player = PathModelPlayer<Model>(DayDemotionPolicy())
            try player.play(&random, rounds: 10)
            demotions += player.demotions
        }
        #expect(demotions > 500)
    }
}
