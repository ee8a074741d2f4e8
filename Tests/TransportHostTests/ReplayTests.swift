import Foundation
import Glibc
import Testing
import TransportHost
import TransportKit

/// A recorded trace under other policies.
@Suite(.timeLimit(.minutes(1))) struct ReplayTests {
    static let path = PathKey(network: "n", destination: "door.test:443")
    static let start = WallTime(seconds: 1_800_000_000)

    typealias Candidate = PathObservation.Candidate

    func dial(
        _ number: Int, at offset: Duration, _ quic: Candidate.Outcome, _ quicTook: Duration?,
        _ webSocket: Candidate.Outcome = .unknown, _ webSocketTook: Duration? = nil, winner: TransportName? = .quic
    ) -> PathObservation {
        PathObservation(
            time: Self.start + offset, path: Self.path, dial: "\(number)",
            event: .dialled(
                [Candidate(.quic, quic, took: quicTook), Candidate(.webSocket, webSocket, took: webSocketTook)],
                winner: winner, after: winner == .quic ? quicTook : webSocketTook, roundTrip: .milliseconds(40)))
    }

    func end(
        _ number: Int, at offset: Duration, _ transport: TransportName = .quic, after: Duration?,
        _ close: Close = .pathLost(TransportError(.idle, "silent"))
    ) -> PathObservation {
        PathObservation(
            time: Self.start + offset, path: Self.path, dial: "\(number)",
            event: .ended(SessionEnding(transport: transport, close: close, sinceFirstMessage: after)))
    }

    func play(
        _ observations: [PathObservation], race: [any RacePolicy] = [HeadStartRacePolicy(), HeadStartRacePolicy()]
    ) -> ReplayReport {
        ReplayReport(Trace(observations), [(race[0], DayDemotionPolicy()), (race[1], EvidenceDemotionPolicy())])
    }

    @Test func `One early death: the one policy demotes for a day, the other wants to see it again`() {
        let report = play([
            dial(1, at: .zero, .opened, .milliseconds(80), .opened, .milliseconds(160)),
            end(1, at: .seconds(30), after: .seconds(29)),
            dial(2, at: .seconds(31), .opened, .milliseconds(82), .opened, .milliseconds(150), winner: .webSocket),
            dial(3, at: .seconds(600), .opened, .milliseconds(80), .opened, .milliseconds(150), winner: .webSocket),
            dial(4, at: .seconds(90_000), .opened, .milliseconds(80), .opened, .milliseconds(150)),
        ])
        let winners = report.dials.map { $0.results.map(\.winner) }
        #expect(
            winners == [
                ["quic", "quic", "quic"],
                // Suspected, it goes last by either.
                ["webSocket", "websocket", "websocket"].map { $0.lowercased() },
                // Proven by the WebSocket's win, it is a demotion here and one of two strikes there.
                ["websocket", "websocket", "quic"],
                ["quic", "quic", "quic"],
            ])
        let changes = report.summaries.map(\.changes)
        #expect(changes[0].map(\.time) == [30, 86_430].map { Self.start.seconds + $0 })
        #expect(changes[0].map(\.until) == [Self.start.seconds + 86_430, nil])
        #expect(changes[1].isEmpty)
        #expect(report.summaries.map(\.carried) == [4, 4])
        #expect(report.dials[0].results.map(\.afterMilliseconds) == [80, 80, 80])
        #expect(report.dials[2].results[1].standingBack == ["quic"])
    }

    @Test func `Two strikes within an hour demote by evidence, and five sound minutes clear`() {
        var trace: [PathObservation] = []
        for number in 0..<2 {
            let base = Duration.seconds(600 * number)
            trace += [
                dial(2 * number, at: base, .opened, .milliseconds(80), .opened, .milliseconds(150)),
                end(2 * number, at: base + .seconds(61), after: .seconds(60)),
                dial(
                    2 * number + 1, at: base + .seconds(62), .opened, .milliseconds(80), .opened, .milliseconds(150),
                    winner: .webSocket),
                end(
                    2 * number + 1, at: base + .seconds(599), .webSocket, after: .seconds(536),
                    Close(.normal, origin: .remote)),
            ]
        }
        trace.append(dial(9, at: .seconds(2000), .opened, .milliseconds(80), .opened, .milliseconds(150)))
        let report = play(trace)
        // 60 s is no early death by the day, and one of five minutes by the evidence.
        #expect(report.summaries[0].changes.isEmpty)
        #expect(report.summaries[1].changes.map(\.transport) == ["quic"])
        // 30 minutes, and half of the quarter that chance may add.
        #expect(report.summaries[1].changes.map { ($0.until ?? 0) - $0.time } == [2025])
        #expect(report.dials.last?.results.map(\.winner) == ["quic", "quic", "websocket"])
    }

    @Test func `A head start that fits the network is compared in milliseconds`() {
        // UDP is swallowed: the QUIC dial ends after its ten seconds.
        let silence = TransportError(.timedOut, "no answer")
        let report = play(
            [
                dial(1, at: .zero, .opened, .milliseconds(80), .opened, .milliseconds(150)),
                dial(
                    2, at: .seconds(600), .failed(silence), .seconds(10), .opened, .milliseconds(150),
                    winner: .webSocket),
            ], race: [HeadStartRacePolicy(), AdaptiveRacePolicy()])
        #expect(report.dials[0].results.map(\.afterMilliseconds) == [80, 80, 80])
        // 1.5 round trips of 40 ms.
        #expect(report.dials[1].results.map(\.afterMilliseconds) == [150, 400, 210])
        #expect(report.dials.allSatisfy { !$0.results[1].isEstimated })
    }

    @Test func `What the trace does not have is taken from the dial before, and marked`() {
        let trace = [
            dial(1, at: .zero, .opened, .milliseconds(80), .opened, .milliseconds(150)),
            dial(2, at: .seconds(1), .opened, .milliseconds(80)),
            dial(3, at: .seconds(2), .failed(TransportError(.refused, "no")), .milliseconds(20), winner: nil),
        ]
        let report = play(trace, race: [ParallelRacePolicy(), HeadStartRacePolicy()])
        #expect(
            report.dials.map { $0.results.map(\.isEstimated) } == [
                [false, false, false], [false, true, false], [false, true, true],
            ])
        #expect(report.dials[2].results.map(\.winner) == [nil, "websocket", "websocket"])
        #expect(report.dials[2].results[2].afterMilliseconds == 170)
        #expect(report.lines.contains { $0.hasPrefix("~ the trace does not have") })
        #expect(report.lines.allSatisfy { $0.count <= 100 })
        #expect(report.lines.contains { $0.hasPrefix("      ") && $0.contains("parallel, day") })
    }

    @Test func `A session that another transport would have carried blames nobody`() {
        let trace = [
            dial(1, at: .zero, .opened, .milliseconds(260), .opened, .milliseconds(20)),
            end(1, at: .seconds(5), after: .seconds(4)),
            dial(2, at: .seconds(6), .opened, .milliseconds(260), .opened, .milliseconds(20)),
        ]
        let report = play(trace, race: [HeadStartRacePolicy(), ParallelRacePolicy()])
        #expect(report.dials[0].results.map(\.winner) == ["quic", "quic", "websocket"])
        #expect(report.summaries.map(\.unusedEndings) == [0, 1])
        #expect(report.summaries.map { $0.changes.count } == [1, 0])
        #expect(report.json.hasPrefix("{\"dials\":["))
    }

    @Test func `A line of a trace is read as it was written`() throws {
        let observations = [
            dial(1, at: .zero, .failed(TransportError(.refused, "x refused")), .milliseconds(12), .opened, .seconds(1)),
            dial(2, at: .seconds(-5), .unknown, nil, .unknown, .milliseconds(5), winner: nil),
            end(1, at: .seconds(9), after: nil),
            end(3, at: .seconds(9), .webSocket, after: .seconds(5), Close(.goingAway, reason: "bye", origin: .remote)),
        ]
        let text = observations.map { Trace.line($0) }.joined(separator: "\n")
        #expect(try Trace.read((text + "\n\n").utf8, file: "t").observations == observations)
        for line in ["x", "{}", "[1]", #"{"event":"dial","time":1,"network":"n","destination":"d","dial":"1"}"#] {
            let error = #expect(throws: TraceError.self) { try Trace.read(("\n" + line).utf8, file: "t") }
            #expect(error?.description == "t:2: this is no line of a trace")
        }
        // A file of somebody else must not break the arithmetic.
        for time in ["-1", "9223372036854775807"] {
            let line =
                #"{"event":"end","time":\#(time),"network":"n","destination":"d","dial":"1","transport":"quic","code":1006,"origin":"path","sinceFirstMessageMilliseconds":1e300}"#
            #expect(throws: TraceError.self) { try Trace.read(line.utf8, file: "t") }
        }
        #expect(play([]).dials.isEmpty)
    }

    @Test(arguments: [
        (["explain"], "transportkit: usage: transportkit explain CARRIER"),
        (["explain", "a", "--race", "ordered"], "transportkit: --race goes with --replay"),
        (["explain", "a", "--replay", "t"], "transportkit: --replay asks no host; leave the carrier out"),
        (
            ["explain", "--replay", "t", "--race", "fast"],
            "transportkit: there is no race policy 'fast'; known are adaptive, head-start, ordered and parallel"
        ),
        (["explain", "--replay", "t", "--demotion", "a,b,c"], "transportkit: --demotion needs one name, or two"),
    ])
    func `Bad usage of a replay is told`(words: [String], expected: String) async throws {
        let ended = try await Program.run(words)
        #expect(ended.code == 2)
        #expect(ended.errors.hasPrefix(expected), "\(ended.errors)")
    }
}
