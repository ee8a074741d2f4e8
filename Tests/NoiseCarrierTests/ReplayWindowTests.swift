import Testing
import TransportKitTesting

@testable import NoiseCarrier

/// R63, R66, R67: 1,024 numbers, checked against a plain record of everything that was received.
@Suite struct ReplayWindowTests {
    /// What a window must say, by keeping everything.
    struct PlainRecord {
        var seen: Set<UInt64> = []
        var highest: UInt64?

        func check(_ number: UInt64) -> ReplayWindow.Verdict {
            if number == .max { return .reserved }
            guard let highest, number <= highest else { return .fresh }
            if highest - number >= 1024 { return .tooOld }
            return seen.contains(number) ? .replayed : .fresh
        }

        mutating func mark(_ number: UInt64) {
            seen.insert(number)
            highest = max(highest ?? 0, number)
        }
    }

    @Test func `The vectors of the window replay`() throws {
        let vectors: Vectors.Window = try Vectors.read("replay-window-1024.json")
        #expect(vectors.shuffled3000.count == 3300)
        for steps in [vectors.edges, vectors.burstOvertakesControl, vectors.shuffled3000] {
            var window = ReplayWindow()
            for (index, step) in steps.enumerated() {
                let verdict = window.check(step.number)
                #expect(verdict == Self.verdicts[step.verdict], "step \(index), number \(step.number)")
                if verdict == .fresh { window.mark(step.number) }
            }
        }
    }

    private static let verdicts: [String: ReplayWindow.Verdict] = [
        "ok": .fresh, "replay": .replayed, "old": .tooOld, "exhausted": .reserved,
    ]

    @Test func `A window says what a plain record says, whatever comes`() {
        var random = SeededGenerator.announced()
        for round in 0..<60 {
            var window = ReplayWindow()
            var record = PlainRecord()
            // Some begin near the end of the numbers.
            let start = round % 3 == 0 ? UInt64.max - 5000 : UInt64.random(in: 0...4, using: &random) * 600
            for step in 0..<3000 {
                let highest = record.highest ?? start
                let number: UInt64 =
                    switch Int.random(in: 0..<10, using: &random) {
                    case 0..<5: highest.addingReportingOverflow(1).partialValue
                    case 5: highest &+ .random(in: 0...70, using: &random)
                    case 6: highest &+ .random(in: 0...3000, using: &random)
                    case 7: highest &- .random(in: 1000...1050, using: &random)
                    default: highest &- .random(in: 0...1100, using: &random)
                    }
                let verdict = window.check(number)
                guard verdict == record.check(number) else {
                    Issue.record("round \(round), step \(step), number \(number): \(verdict)")
                    return
                }
                // Not all that are checked turn out to be authentic.
                if verdict == .fresh, Int.random(in: 0..<8, using: &random) > 0 {
                    window.mark(number)
                    record.mark(number)
                }
            }
        }
    }

    @Test func `Three thousand shuffled numbers are each accepted once`() {
        var random = SeededGenerator.announced()
        var window = ReplayWindow()
        var record = PlainRecord()
        // Blocks of 500 are shuffled, so none is overtaken by a window of others.
        var numbers: [UInt64] = []
        for block in 0..<6 { numbers += (UInt64(block * 500)..<UInt64(block * 500 + 500)).shuffled(using: &random) }
        var accepted = 0
        for number in numbers + numbers.shuffled(using: &random) {
            let verdict = window.check(number)
            #expect(verdict == record.check(number))
            guard verdict == .fresh else { continue }
            accepted += 1
            window.mark(number)
            record.mark(number)
        }
        #expect(accepted == 3000)
    }

    @Test func `A burst of a hundred that overtakes a message does not cost it`() {
        // R64
        var window = ReplayWindow()
        for number in UInt64(1)...100 { window.mark(number) }
        #expect(window.check(0) == .fresh)
        for number in UInt64(101)...1023 { window.mark(number) }
        #expect(window.check(0) == .fresh)
        window.mark(1024)
        #expect(window.check(0) == .tooOld)
    }
}
