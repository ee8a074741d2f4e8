import Testing
import TransportKit

/// What counts as QUIC failing, line by line (R46–R54).
@Suite struct DemotionTests {
    private static func verdict(
        _ code: CloseCode, _ origin: Close.Origin, after age: Duration?, transport: TransportName = .quic,
        migrated: Bool = false
    ) -> Bool {
        let ending = SessionEnding(
            transport: transport, close: Close(code, origin: origin), sinceFirstMessage: age, migrated: migrated)
        let verdict = DayDemotionPolicy().judge(
            .ended(ending), history: PathHistory(), at: WallTime(seconds: 0), fraction: 0)
        guard case .demote(let lifetime, _, _) = verdict else { return false }
        return lifetime == .seconds(86_400)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let code: UInt64
        let origin: Close.Origin
        let age: Duration?
        let counts: Bool
        var testDescription: String { "\(code) \(origin) after \(age.map { "\($0)" } ?? "nothing"): \(counts)" }
    }

    static let rows: [Row] = [
        // R46: before the first message.
        Row(code: 1006, origin: .path, age: nil, counts: true),
        Row(code: 1005, origin: .remote, age: nil, counts: true),
        Row(code: 0, origin: .remote, age: nil, counts: true),
        Row(code: 999, origin: .remote, age: nil, counts: true),
        // R47: within a minute of it, strictly.
        Row(code: 1006, origin: .path, age: .zero, counts: true),
        Row(code: 1006, origin: .path, age: .milliseconds(59_999), counts: true),
        Row(code: 1006, origin: .path, age: .nanoseconds(59_999_999_999), counts: true),
        Row(code: 1006, origin: .path, age: .seconds(60), counts: false),
        Row(code: 1005, origin: .remote, age: .seconds(10), counts: true),
        // R52: later.
        Row(code: 1006, origin: .path, age: .seconds(3600), counts: false),
        Row(code: 12, origin: .remote, age: .seconds(61), counts: false),
        // R50: the service spoke.
        Row(code: 1000, origin: .remote, age: nil, counts: false),
        Row(code: 1001, origin: .remote, age: nil, counts: false),
        Row(code: 1011, origin: .remote, age: .seconds(1), counts: false),
        Row(code: 4403, origin: .remote, age: nil, counts: false),
        Row(code: 4404, origin: .remote, age: .seconds(1), counts: false),
        Row(code: 4429, origin: .remote, age: nil, counts: false),
        // This end ended it.
        Row(code: 1006, origin: .local, age: nil, counts: false),
        Row(code: 1000, origin: .local, age: nil, counts: false),
    ]

    @Test(arguments: rows)
    func `An ending counts as QUIC failing, or not`(row: Row) {
        #expect(Self.verdict(CloseCode(rawValue: row.code), row.origin, after: row.age) == row.counts)
        // Nothing of it ever counts against the WebSocket.
        #expect(!Self.verdict(CloseCode(rawValue: row.code), row.origin, after: row.age, transport: .webSocket))
        // R54: a session that moved blames no network.
        #expect(!Self.verdict(CloseCode(rawValue: row.code), row.origin, after: row.age, migrated: true))
    }
}
