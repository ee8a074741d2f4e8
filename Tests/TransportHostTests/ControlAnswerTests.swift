import Foundation
import Synchronization
import Testing
import TransportHost

/// What `status` and `explain` make of an answer that no host of this version would give. Costs about three seconds: it runs
/// the program some twenty times.
@Suite(.timeLimit(.minutes(2))) struct ControlAnswerTests {
    static let status = #"""
        {"version":"1","pid":1,"config":"c","now":1800000007,"uptimeSeconds":5,"carriers":[{"name":"main","state":"waiting","text":"Waiting","since":1800000001,"nextAttemptInSeconds":1.5}],"paths":[{"network":"0123456789","isCurrent":true,"destination":"door.test:443","winner":"quic","winnerSince":1800000002,"winnerUntil":1800000003,"roundTripMilliseconds":20,"demotions":[{"transport":"quic","since":1800000004,"until":1800000009,"reason":"it broke"}]}],"forwards":[],"listeners":[]}
        """#
    static let explain = #"""
        {"carrier":"main","state":"idle","now":1800000007,"url":"wss://door.test","establishments":[{"began":1800000001,"network":"0123456789","memory":{"demotions":[],"unproven":[]},"candidates":[{"transport":"quic","plannedStartMilliseconds":0,"startMilliseconds":1.5,"outcome":"won","attempts":[{"address":"192.0.2.1:443","startMilliseconds":2}]}],"why":"it was first"}]}
        """#

    /// Answers as a host at the control socket of a config file, and runs `body` with the file.
    func answering(
        _ body: (_ ask: (_ words: [String], _ answer: String) async throws -> Program.Ended) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let file = "\(folder)/host.yaml"
            try write(
                """
                control: s
                listeners: { a: { url: "ws://127.0.0.1:1", routes: { /echo: { service: echo } } } }
                """, to: file)
            let answer = Answer()
            let server = try ControlServer("\(folder)/s") { _ in answer.bytes }
            defer { server.stop() }
            try await body { words, text in
                answer.bytes = Array(text.utf8)
                return try await Program.run(words + [file])
            }
        }
    }

    final class Answer: Sendable {
        private let kept = Mutex<[UInt8]>([])
        var bytes: [UInt8] {
            get { kept.withLock { $0 } }
            set { kept.withLock { $0 = newValue } }
        }
    }

    static let least = "-9223372036854775808"
    static let numbers: [(word: String, number: String, worse: String, told: String)] = [
        ("status", "1800000007", least, "now is \(least), which is no time"),
        ("status", "1800000001", least, "carriers[0].since is \(least), which is no time"),
        ("status", "1.5", "1e300", "carriers[0].nextAttemptInSeconds is 1e+300, which is no duration"),
        ("status", "1800000002", least, "paths[0].winnerSince is \(least), which is no time"),
        ("status", "20,", "1e19,", "paths[0].roundTripMilliseconds is 1e+19, which is no duration"),
        (
            "status", "1800000009", "9223372036854775807",
            "paths[0].demotions[0].until is 9223372036854775807, which is no time"
        ),
        ("status", "\"uptimeSeconds\":5,", "", "uptimeSeconds is missing"),
        ("status", "\"pid\":1", "\"pid\":\"x\"", "pid is not what it should be"),
        ("status", "{\"version\"", "}", "The given data was not valid JSON"),
        ("explain", "1800000007", least, "now is \(least), which is no time"),
        ("explain", "1800000001", least, "establishments[0].began is \(least), which is no time"),
        (
            "explain", "1.5", "1e300",
            "establishments[0].candidates[0].startMilliseconds is 1e+300, which is no duration"
        ),
    ]

    // Eight of these ended the program with SIGILL, and one was shown as 107 million million days.
    @Test func `A number that no host would say makes an answer that cannot be read`() async throws {
        try await answering { ask in
            #expect(try await ask(["status"], Self.status).code == 0)
            #expect(try await ask(["explain", "main"], Self.explain).code == 0)
            for (word, number, worse, told) in Self.numbers {
                let answer = (word == "status" ? Self.status : Self.explain)
                    .replacingOccurrences(of: number, with: worse)
                let ended = try await ask(word == "status" ? [word] : [word, "main"], answer)
                #expect(ended.code == 1)
                #expect(
                    ended.errors == "transportkit: the answer cannot be read: \(told); "
                        + "the transportkit that runs may be of another version\n")
            }
        }
    }

    @Test func `The text of an answer moves no cursor`() async throws {
        // Escape, a new line, the one-byte escape sequence of old terminals, and what turns the writing round.
        let bad = "\\u001b[2J\\nfake\u{9b}31m\u{202e}"
        func isFit(_ text: String) -> Bool {
            text.unicodeScalars.allSatisfy { scalar in
                let category = scalar.properties.generalCategory
                return scalar == "\n" || (category != .control && category != .format)
            }
        }
        try await answering { ask in
            for (words, answer) in [(["status"], Self.status), (["explain", "main"], Self.explain)] {
                var spoilt = answer
                for text in [
                    "\"c\"", "main", "Waiting", "0123456789", "door.test", "it broke", "192.0.2.1", "won", "first",
                ] {
                    spoilt = spoilt.replacingOccurrences(of: text, with: text.hasPrefix("\"") ? "\"\(bad)\"" : bad)
                }
                spoilt = spoilt.replacingOccurrences(of: "\"quic\"", with: "\"\(bad)\"")
                let plain = try await ask(words, answer)
                let text = try await ask(words, spoilt)
                #expect(text.code == 0, "\(text.errors)")
                #expect(isFit(text.output))
                #expect(
                    text.output.split(separator: "\n").filter { $0.hasPrefix("fake") }.isEmpty
                        && text.output.contains("fake"))
                #expect(isFit(plain.output))
                let json = try await ask(words + ["--json"], spoilt)
                #expect(json.code == 0)
                #expect(isFit(json.output))
                #expect(
                    try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? NSDictionary
                        == JSONSerialization.jsonObject(with: Data(spoilt.utf8)) as? NSDictionary)
            }
        }
    }

    @Test func `Whatever the numbers, a report can be shown`() throws {
        var report = try JSONDecoder().decode(StatusReport.self, from: Data(Self.status.utf8))
        (report.now, report.uptimeSeconds) = (.min, .min)
        report.carriers[0].since = .max
        report.carriers[0].nextAttemptInSeconds = .infinity
        report.paths[0].winnerSince = .min
        report.paths[0].demotions[0].until = .max
        report.paths[0].roundTripMilliseconds = 1e300
        #expect(StatusText.lines(report).contains { $0.contains("next attempt in inf s") })
        #expect(StatusText.lines(report).contains { $0.contains("1e+300 ms") })
    }
}
