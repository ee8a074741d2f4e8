import Testing

@testable import TransportKit

/// What a link writes about its failures (B25).
@Suite struct LinkJournalTests {
    private let log = RecordingLog()
    private let now = Instant.zero

    private var journal: LinkJournal { LinkJournal(name: "main", log: Log(sink: log)) }

    private func failed(_ reason: String) -> CarrierState {
        .waiting(until: now + .milliseconds(250), after: Close(.pathLost, reason: reason, origin: .path))
    }

    private var lines: [String] { log.lines.map(\.message) }

    @Test func `A failure that repeats is told at every power of two`() {
        var journal = journal
        for _ in 0..<100 { journal.note(failed("silence"), now: now) }
        #expect(lines.count == 7)
        #expect(lines.first?.hasSuffix("(silence); next attempt in 250 ms") == true, "\(lines)")
        #expect(lines.last?.hasSuffix("(silence) (failure 64 in a row); next attempt in 250 ms") == true, "\(lines)")
    }

    @Test func `Failures that alternate are counted, each for itself`() {
        var journal = journal
        for _ in 0..<100 {
            for reason in ["silence", "refused"] { journal.note(failed(reason), now: now) }
        }
        #expect(lines.count == 14)
        #expect(lines.filter { $0.contains("refused") }.count == 7)
        #expect(lines.last?.contains("(refused) (failure 128 in a row)") == true, "\(lines)")
    }

    @Test func `A new failure is told at once, and after a session so is an old one`() {
        var journal = journal
        for _ in 0..<3 { journal.note(failed("silence"), now: now) }
        journal.note(failed("refused"), now: now)
        #expect(lines.count == 3)
        journal.note(.open(CarrierPath(carrier: "direct", transport: .quic)), now: now)
        #expect(lines.last == "main: connected · QUIC after 4 failures")
        journal.note(failed("silence"), now: now)
        #expect(lines.count == 5)
    }

    @Test func `What the wait is does not make it another failure`() {
        var journal = journal
        for seconds in 1...8 {
            let close = Close(.pathLost, reason: "silence", origin: .path)
            journal.note(.waiting(until: now + .seconds(seconds), after: close), now: now)
        }
        #expect(lines.count == 4)
    }

    @Test func `Ever new reasons are told, and sixteen of them remembered`() {
        var journal = journal
        for number in 0..<17 { journal.note(failed("reason \(number)"), now: now) }
        #expect(lines.count == 17)
        // Forgotten since: as if it were new.
        journal.note(failed("reason 0"), now: now)
        #expect(lines.count == 18)
        for _ in 0..<2 { journal.note(failed("reason 16"), now: now) }
        #expect(lines.count == 19)
    }
}
