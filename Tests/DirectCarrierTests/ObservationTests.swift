import Glibc
import MemoryTransport
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// What carriers tell an observer, and what a replay makes of it. Simulated time; costs milliseconds.
@Suite struct ObservationTests {
    final class Recorder: PathObserver {
        private let told = Mutex<[PathObservation]>([])

        var all: [PathObservation] { told.withLock { $0 } }

        func observe(_ observation: PathObservation) { told.withLock { $0.append(observation) } }
    }

    @Test func `The dials of several carriers that tell one observer are told apart`() throws {
        let world = try DirectWorld()
        let recorder = Recorder()
        let (simulation, url) = (world.simulation, world.url)
        func carrier(_ transport: MemoryTransport) throws -> DirectCarrier {
            var context = BuildContext(
                executor: simulation.executor, time: simulation.time, network: { "home" })
            context.observer = recorder
            return try DirectCarrier(url: url, transports: [transport], context: context)
        }
        // In the same second, each its first dial, to the same destination, as three hosts would beside each other.
        let carriers = [try carrier(world.quic), try carrier(world.webSocket), try carrier(world.quic)]
        for carrier in carriers {
            let socket = try simulation.run { try await carrier.open() }
            simulation.start { _ = await socket.close() }
        }
        simulation.advance(by: .seconds(1))
        for carrier in carriers { simulation.start { await carrier.close() } }
        world.end()
        let dials = recorder.all.filter { if case .dialled = $0.event { true } else { false } }.map(\.dial)
        let ends = recorder.all.filter { if case .ended = $0.event { true } else { false } }.map(\.dial)
        #expect(dials.count == 3)
        #expect(Set(dials).count == 3, "\(dials)")
        #expect(Set(ends) == Set(dials))
        let outcome = PathReplay.play(recorder.all, race: HeadStartRacePolicy(), demotion: DayDemotionPolicy())
        #expect(outcome.dials.map(\.winner) == [.quic, .webSocket, .quic])
        #expect(outcome.unusedEndings == 0)
    }

    @Test func `A replay tells dials of one name apart by their paths`() {
        let (quic, webSocket) = (TransportName.quic, TransportName.webSocket)
        let observations = [("a:443", quic), ("b:443", webSocket)].flatMap { destination, transport in
            let path = PathKey(network: "n", destination: destination)
            let took = Duration.milliseconds(80)
            return [
                PathObservation(
                    time: WallTime(seconds: 1000), path: path, dial: "1000-1",
                    event: .dialled(
                        [PathObservation.Candidate(transport, .opened, took: took)], winner: transport, after: took,
                        roundTrip: nil)),
                PathObservation(
                    time: WallTime(seconds: 1100), path: path, dial: "1000-1",
                    event: .ended(
                        SessionEnding(
                            transport: transport, close: Close(.normal, origin: .remote),
                            sinceFirstMessage: .seconds(100)))),
            ]
        }
        let outcome = PathReplay.play(observations, race: HeadStartRacePolicy(), demotion: DayDemotionPolicy())
        #expect(outcome.unusedEndings == 0)
    }

    @Test(arguments: [(405, true), (408, false)])
    func `A session counts as sound five minutes after it opened, not after it was dialled`(
        end: Int64, demotes: Bool
    ) {
        let path = PathKey(network: "n", destination: "d:443")
        let silence = TransportError(.timedOut, "no answer")
        func dial(_ time: Int64, _ quic: Duration?, _ webSocket: Duration?) -> PathObservation {
            func candidate(_ name: TransportName, _ took: Duration?) -> PathObservation.Candidate {
                PathObservation.Candidate(
                    name, took == nil ? .failed(silence) : .opened, took: took ?? .seconds(10))
            }
            return PathObservation(
                time: WallTime(seconds: time), path: path, dial: "\(time)",
                event: .dialled(
                    [candidate(.quic, quic), candidate(.webSocket, webSocket)], winner: nil, after: nil,
                    roundTrip: nil))
        }
        func lost(_ time: Int64, of dial: Int64, after age: Int64) -> PathObservation {
            let close = Close(.pathLost, origin: .path, cause: silence)
            return PathObservation(
                time: WallTime(seconds: time), path: path, dial: "\(dial)",
                event: .ended(SessionEnding(transport: .quic, close: close, sinceFirstMessage: .seconds(age))))
        }
        let quick = Duration.milliseconds(80)
        let outcome = PathReplay.play(
            [
                dial(0, quick, quick), lost(10, of: 0, after: 9), dial(11, quick, quick),
                // Eight seconds under way: it stands from the 108th on.
                dial(100, .seconds(8), nil), lost(end, of: 100, after: end - 109), dial(end + 1, quick, quick),
            ], race: HeadStartRacePolicy(), demotion: EvidenceDemotionPolicy())
        #expect(outcome.dials.map(\.winner) == [.quic, .webSocket, .quic, .webSocket])
        // The second early death within the hour, unless the session has proven sound in between.
        #expect(outcome.changes.isEmpty != demotes)
    }

    /// What a replay of so many dials costs, in time of the processor; none of their sessions ever ends.
    func cost(dials count: Int) -> Duration {
        let observations = (0..<count).map { number in
            PathObservation(
                time: WallTime(seconds: 1000 + Int64(number)),
                path: PathKey(network: "n", destination: "d\(number % 8):443"), dial: "\(number)",
                event: .dialled(
                    [PathObservation.Candidate(.quic, .opened, took: .milliseconds(80))], winner: .quic,
                    after: .milliseconds(80), roundTrip: nil))
        }
        func now() -> Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        let start = now()
        let outcome = PathReplay.play(observations, race: HeadStartRacePolicy(), demotion: EvidenceDemotionPolicy())
        #expect(outcome.dials.count == count)
        return now() - start
    }

    // Costs a second or two. With a search among all sessions at each dial it was thirty times as much, not eight.
    @Test func `A replay takes as long as the trace is, and not as its square`() {
        #expect(cost(dials: 8000) < cost(dials: 1000) * 20)
    }
}
