import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// The `evidence` policy and the ledger in front of it, against its rules as a record of plain facts.
@Suite struct EvidenceModelTests {
    private struct Model: PathModel {
        static let day = 86_400

        struct Failure {
            var time: Int
            /// It had opened and broke.
            var isBreak: Bool
        }

        /// Failures of QUIC that nobody has carried after.
        var unproven: [Failure] = []
        var strikes: [Failure] = []
        var demotion: (until: Int, isBreak: Bool)?
        var demotionsInARow = 0
        var webSocketFailed: Int?
        var probed: Int?
        var remembered: (transport: TransportName, until: Int)?
        /// When something was written down last.
        var changed = Int.min

        func demotedUntil(at now: Int) -> Int? { demotion.flatMap { $0.until > now ? $0.until : nil } }

        func winner(at now: Int) -> TransportName? {
            remembered.flatMap { $0.until > now ? $0.transport : nil }
        }

        func standsBack(at now: Int) -> Bool {
            if unproven.contains(where: { $0.time + Self.day > now }) { return true }
            // Suspended while the other one has failed within five minutes.
            let isSuspended = webSocketFailed.map { now < $0 + 300 } ?? false
            return demotedUntil(at: now) != nil && !isSuspended
        }

        // Every ten minutes while it is demoted.
        func mayProbe(at now: Int) -> Bool {
            guard demotedUntil(at: now) != nil, let probed, probed > now - Self.day else { return true }
            return probed + 600 <= now
        }

        mutating func see(_ step: PathStep, at now: Int, fraction: Double) {
            forgetWhatIsOld(now)
            switch step {
            case .ended(let ending):
                guard Self.isPathEnd(ending) else { return }
                note(now)
                if ending.transport == .webSocket { webSocketFailed = now }
                let isEarly = ending.sinceFirstMessage.map { $0 < .seconds(300) } ?? true
                if ending.transport == .quic, isEarly { unproven.append(Failure(time: now, isBreak: true)) }
            case .failed(.webSocket, _, _):
                note(now)
                webSocketFailed = now
            case .failed(_, let error, let carrier):
                note(now)
                let isOfNetwork = ![.certificateExpired, .pinMismatch, .resources, .nameNotFound].contains(error.code)
                // While it is demoted anyway, a dial that fails is what everybody expects.
                if isOfNetwork, demotedUntil(at: now) == nil { unproven.append(Failure(time: now, isBreak: false)) }
                if carrier != nil { prove(now, fraction) }
            case .opened(let transport):
                note(now)
                if transport == .webSocket { prove(now, fraction) }
            case .nothingOpened:
                unproven = []
            case .probing:
                note(now)
                probed = now
            case .probed:
                note(now)
                // It opens again; where it had broken after opening, that says little.
                if let demotion, !demotion.isBreak { self.demotion = nil }
            case .remember(let transport):
                note(now)
                if transport == .quic, demotedUntil(at: now) != nil { return }
                remembered = (transport, now + Self.day)
            case .lasted(.quic):
                note(now)
                (unproven, strikes, demotion, demotionsInARow, probed) = ([], [], nil, 0, nil)
            case .lasted:
                note(now)
            }
        }

        mutating func restart() { unproven = [] }

        private mutating func note(_ now: Int) { changed = now }

        /// R56: no failure counts after a day, and nothing outlives a day in which nothing happened.
        private mutating func forgetWhatIsOld(_ now: Int) {
            if demotedUntil(at: now) == nil { demotion = nil }
            strikes.removeAll { $0.time <= now - Self.day }
            unproven.removeAll { $0.time <= now - Self.day }
            guard changed <= now - Self.day else { return }
            let waiting = unproven
            self = Model()
            unproven = waiting
        }

        /// Another transport carries: each failure before that is a strike, and the second within an hour demotes.
        private mutating func prove(_ now: Int, _ fraction: Double) {
            let proven = unproven.suffix(8)
            unproven = []
            for failure in proven {
                if !failure.isBreak, demotion != nil { continue }
                let recent = strikes.filter { failure.time - $0.time < 3600 }
                guard !recent.isEmpty else {
                    strikes.append(failure)
                    continue
                }
                // Half an hour, twice as long each time, up to a quarter longer by chance, a day at most.
                var seconds = 1800.0
                for _ in 0..<min(demotionsInARow, 10) { seconds *= 2 }
                seconds = min(seconds * (1 + fraction / 4), Double(Self.day))
                let until = failure.time + Int(seconds)
                demotion = (until, failure.isBreak || recent.contains { $0.isBreak })
                demotionsInARow += 1
                strikes = []
                if until <= now { demotion = nil }
            }
        }

        private static func isPathEnd(_ ending: SessionEnding) -> Bool {
            let code = ending.close.code.rawValue
            guard code < 1000 || code == 1005 || code == 1006, !ending.migrated else { return false }
            guard ending.close.origin == .remote || ending.close.origin == .path else { return false }
            return ending.close.cause?.code != .refused && ending.close.cause?.code != .forgotten
        }
    }

    @Test func `10,000 random histories of the evidence policy are what its rules say`() throws {
        var random = SeededGenerator.announced()
        var demotions = 0
        for _ in 0..<10_000 {
            var player = PathModelPlayer<Model>(EvidenceDemotionPolicy())
            try player.play(&random, rounds: 10)
            demotions += player.demotions
        }
        #expect(demotions > 500)
    }
}
