import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// What is suspected of a network whose name turns out to mean another (R54, B48).
@Suite struct LedgerNameTests {
    /// A memory that is told what the names of networks mean; `-` is one that nobody can tell any more.
    private final class Names: PathMemory {
        private let memory = InProcessPathMemory()
        private let meanings = Mutex<[String: String]>([:])

        func mean(_ network: String, by name: String) { meanings.withLock { $0[name] = network } }

        func kept(_ path: PathKey) -> PathKey? {
            let network = meanings.withLock { $0[path.network] } ?? path.network
            return network == "-" ? nil : PathKey(network: network, destination: path.destination)
        }

        func history(of path: PathKey, at now: WallTime) -> PathHistory {
            kept(path).map { memory.history(of: $0, at: now) } ?? PathHistory()
        }

        func change(_ path: PathKey, at now: WallTime, _ body: (inout PathHistory) -> Void) {
            if let path = kept(path) { memory.change(path, at: now, body) }
        }

        func all(at now: WallTime) -> [PathKey: PathHistory] { memory.all(at: now) }
    }

    private let names = Names()
    private let log = RecordingLog()
    private let ledger: PathLedger
    private let now = ManualTime().wallNow()

    init() {
        let simulation = Simulation()
        let context = BuildContext(
            executor: simulation.executor, time: simulation.time, log: Log(sink: log), memory: names)
        ledger = PathLedger(policy: DayDemotionPolicy(), context: context, destination: "service.example")
    }

    private func path(_ network: String) -> PathKey { PathKey(network: network, destination: "service.example:443") }

    private func breakQUIC(on network: String) {
        let close = Close(.pathLost, origin: .path)
        ledger.ended(SessionEnding(transport: .quic, close: close, sinceFirstMessage: nil), on: path(network))
    }

    @Test func `It goes with the network when that is told apart`() {
        names.mean("guess", by: "stay")
        breakQUIC(on: "stay")
        names.mean("home", by: "stay")
        #expect(ledger.record(of: path("home")).demotions[.quic] != nil)
        #expect(ledger.record(of: path("guess")).demotions.isEmpty)
        // The next stay is on another network, whose WebSocket proves nothing of this one.
        names.mean("office", by: "stay#2")
        ledger.opened(.webSocket, roundTrip: nil, on: path("stay#2"))
        #expect(names.all(at: now)[path("office")]?[.quic].demotion == nil)
        names.mean("home", by: "stay#3")
        ledger.opened(.webSocket, roundTrip: nil, on: path("stay#3"))
        #expect(names.all(at: now)[path("home")]?[.quic].demotion != nil)
        #expect(log.lines.count == 1)
    }

    @Test func `Where nobody can tell which network it was, nothing is suspected and nothing is said`() {
        breakQUIC(on: "stay")
        names.mean("-", by: "stay")
        breakQUIC(on: "stay")
        names.mean("office", by: "stay#2")
        #expect(ledger.record(of: path("stay#2")).demotions.isEmpty)
        ledger.opened(.webSocket, roundTrip: nil, on: path("stay"))
        #expect(names.all(at: now).values.allSatisfy { $0[.quic].demotion == nil })
        #expect(log.lines.isEmpty)
    }

    @Test func `So much is suspected of a path and of all at most, and the oldest goes`() {
        for number in 0..<600 { breakQUIC(on: "n\(number)") }
        #expect(ledger.record(of: path("n87")).demotions.isEmpty)
        #expect(ledger.record(of: path("n88")).demotions[.quic] != nil)
    }
}
