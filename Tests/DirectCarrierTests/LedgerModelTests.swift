import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// Random dials and sessions against a plain list of what waits for its proof.
@Suite struct LedgerModelTests {
    /// A policy that writes down what it is asked once it is proven; whether something is a suspicion at all the event says.
    private struct Witness: DemotionPolicy {
        static let proven = 0.5

        let heard = Heard()
        var name: String { "witness" }

        func judge(_ event: PathEvent, history: PathHistory, at now: WallTime, fraction: Double) -> Verdict {
            let what =
                switch event {
                case .ended(let ending): ending.close.reason
                case .failedToOpen(_, let error): error.message
                case .lasted(let transport): "lasted \(transport)"
                case .probed(let transport): "probed \(transport)"
                }
            if fraction == Self.proven { heard.add("\(what) of \(now.seconds)") }
            return what.hasPrefix("harmless") ? .sound : .lift
        }
    }

    private final class Heard: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: String) { lines.withLock { $0.append(line) } }
        func take() -> [String] {
            lines.withLock { lines in
                defer { lines = [] }
                return lines
            }
        }
    }

    /// What waits, on one path.
    private struct Suspicion {
        var transport: TransportName
        var text: String
        var time: Int
    }

    private struct Difference: Error, CustomStringConvertible {
        let description: String
    }

    @Test func `10,000 random histories prove what another transport has carried, and drop what nothing has`() throws {
        var random = SeededGenerator.announced()
        for _ in 0..<10_000 { try play(&random) }
    }

    private func play(_ random: inout SeededGenerator) throws {
        let time = ManualTime()
        let policy = Witness()
        let ledger = PathLedger(
            policy: policy, context: BuildContext(executor: ManualExecutor(), time: time), destination: "door",
            random: { Witness.proven })
        let names: [TransportName] = [.quic, .webSocket, "third"]
        var waiting: [PathKey: [Suspicion]] = [:]
        for number in 0..<16 {
            let path = PathKey(network: Bool.random(using: &random) ? "home" : "office", destination: "door")
            let transport = names.randomElement(using: &random) ?? .quic
            let isHarmless = Int.random(in: 0..<4, using: &random) == 0
            let text = "\(isHarmless ? "harmless" : "failure") \(number)"
            if Int.random(in: 0..<8, using: &random) == 0 {
                time.advance(by: .seconds([1, 600, 40_000].randomElement(using: &random) ?? 1))
            }
            let now = Int(time.wallNow().seconds)
            var expected: [String] = []
            func suspect() {
                guard !isHarmless else { return }
                waiting[path, default: []].append(Suspicion(transport: transport, text: text, time: now))
                waiting[path] = waiting[path]?.suffix(8)
            }
            func prove(_ isProven: (Suspicion) -> Bool) {
                expected += waiting[path, default: []].filter(isProven).map { "\($0.text) of \($0.time)" }
                waiting[path]?.removeAll(where: isProven)
            }
            switch Int.random(in: 0..<16, using: &random) {
            case 0..<4:
                let close = Close(.pathLost, reason: text, origin: .path)
                // Nobody is blamed for the end of a session that has moved (R54) or that its service has ended (R50).
                let (hasMigrated, spoke) = (number % 5 == 0, number % 7 == 0)
                ledger.ended(
                    SessionEnding(
                        transport: transport,
                        close: spoke ? Close(.refused, reason: text, origin: .remote) : close, sinceFirstMessage: nil,
                        migrated: hasMigrated), on: path)
                if !hasMigrated, !spoke { suspect() }
            case 4..<8:
                ledger.failed(transport, TransportError(.timedOut, text), carrier: nil, on: path)
                suspect()
            case 8..<10:
                // Another transport carries already what this one was dialled for.
                ledger.failed(transport, TransportError(.timedOut, text), carrier: "other", on: path)
                suspect()
                prove { $0.transport == transport }
            case 10..<13:
                ledger.opened(transport, roundTrip: nil, on: path)
                prove { $0.transport != transport }
            case 13:
                ledger.nothingOpened(on: path)
                waiting[path] = []
            case 14:
                ledger.lasted(transport, on: path)
                waiting[path]?.removeAll { $0.transport == transport }
                expected.append("lasted \(transport) of \(now)")
            default:
                ledger.probed(transport, on: path)
                expected.append("probed \(transport) of \(now)")
            }
            let heard = policy.heard.take()
            guard heard == expected else {
                throw Difference(description: "after \(number) steps \(heard) was proven instead of \(expected)")
            }
            // A suspect goes last, for a day.
            if Bool.random(using: &random) {
                waiting[path]?.removeAll { $0.time + 86_400 <= now }
                let suspects = Set(ledger.record(of: path).demotions.keys)
                let known = Set(waiting[path, default: []].map(\.transport))
                guard suspects == known else {
                    throw Difference(description: "after \(number) steps \(suspects) are suspected instead of \(known)")
                }
            }
        }
    }
}
