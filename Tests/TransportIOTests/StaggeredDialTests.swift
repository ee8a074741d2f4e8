import Synchronization
import Testing
import TransportIO
import TransportKit
import TransportKitTesting

@Suite(.timeLimit(.minutes(1))) struct StaggeredDialTests {
    static let start = Instant(nanoseconds: 1_000_000_000)

    static func after(_ milliseconds: Int) -> Instant { start + .milliseconds(milliseconds) }

    @Test func `Attempts start 250 ms apart and the first success wins`() {
        var dial = StaggeredDial(count: 3)
        #expect(dial.begin(now: Self.start) == [.start(0), .arm(Self.after(250))])
        #expect(dial.timeout(now: Self.after(249)) == [])
        #expect(dial.timeout(now: Self.after(250)) == [.start(1), .arm(Self.after(500))])
        #expect(dial.succeeded(1) == [.win(1)])
        #expect(dial.timeout(now: Self.after(500)) == [])
        #expect(dial.succeeded(0) == [.discard(0)])
        #expect(dial.failed(2, now: Self.after(501)) == [])
    }

    @Test func `A failure starts the next attempt at once and moves the one after`() {
        var dial = StaggeredDial(count: 3)
        _ = dial.begin(now: Self.start)
        #expect(dial.failed(0, now: Self.after(10)) == [.start(1), .arm(Self.after(260))])
        #expect(dial.timeout(now: Self.after(250)) == [])
        #expect(dial.timeout(now: Self.after(260)) == [.start(2)])
        #expect(dial.failed(1, now: Self.after(270)) == [])
        #expect(dial.failed(2, now: Self.after(280)) == [.fail])
    }

    @Test func `No address is a failure, and no more than the limit is tried`() {
        var none = StaggeredDial(count: 0)
        #expect(none.begin(now: Self.start) == [.fail])
        var capped = StaggeredDial(count: 100, limit: 2)
        #expect(capped.begin(now: Self.start) == [.start(0), .arm(Self.after(250))])
        #expect(capped.timeout(now: Self.after(250)) == [.start(1)])
        #expect(capped.failed(0, now: Self.after(251)) == [])
        #expect(capped.failed(1, now: Self.after(252)) == [.fail])
    }

    // R153: a lost first packet of TCP would cost a second.
    @Test func `With a second round, silent addresses are tried again, those that failed are not`() {
        var dial = StaggeredDial(count: 2, rounds: 2)
        #expect(dial.begin(now: Self.start) == [.start(0), .arm(Self.after(250))])
        #expect(dial.timeout(now: Self.after(250)) == [.start(1), .arm(Self.after(500))])
        // There is nothing new to begin at once.
        #expect(dial.failed(0, now: Self.after(300)) == [])
        #expect(dial.timeout(now: Self.after(500)) == [.start(3)])
        #expect(dial.address(of: 3) == 1)
        #expect(dial.succeeded(3) == [.win(3)])
        #expect(dial.succeeded(1) == [.discard(1)])
    }

    @Test func `An address that refused is not tried a second time`() {
        var dial = StaggeredDial(count: 1, rounds: 2)
        #expect(dial.begin(now: Self.start) == [.start(0), .arm(Self.after(250))])
        #expect(dial.failed(0, now: Self.after(40)) == [.fail])
        #expect(dial.timeout(now: Self.after(250)) == [])
        var silent = StaggeredDial(count: 1, rounds: 2)
        _ = silent.begin(now: Self.start)
        #expect(silent.timeout(now: Self.after(250)) == [.start(1)])
        #expect(silent.failed(1, now: Self.after(290)) == [])
        #expect(silent.failed(0, now: Self.after(1_000)) == [.fail])
    }

    /// How an address behaves in simulated time.
    enum Behaviour: Sendable {
        case blackHole
        case refuses
        case answers(afterMilliseconds: Int)
    }

    final class Numbers: Sendable {
        private let kept = Mutex<[Int]>([])

        func append(_ number: Int) { kept.withLock { $0.append(number) } }

        var all: [Int] { kept.withLock { $0 } }
    }

    struct Outcome {
        var winner: Int?
        var error: TransportError?
        var took: Duration
        var attempts: [Int]
        var discarded: [Int]
    }

    func dial(_ behaviours: [Behaviour]) throws -> Outcome {
        let simulation = Simulation()
        let time = simulation.time
        return try simulation.run {
            let attempts = Numbers()
            let discarded = Numbers()
            let addresses = behaviours.indices.map { SocketAddress.loopback(port: UInt16($0)) }
            var outcome = Outcome(took: .zero, attempts: [], discarded: [])
            do throws(TransportError) {
                outcome.winner = try await dialStaggered(addresses, time: time) { address throws(TransportError) in
                    let index = Int(address.port)
                    attempts.append(index)
                    do {
                        switch behaviours[index] {
                        case .blackHole: try await time.sleep(for: .seconds(127))
                        case .refuses: throw TransportError(.refused, "refused \(index)")
                        case .answers(let milliseconds):
                            try await time.sleep(for: .milliseconds(milliseconds))
                            return index
                        }
                    } catch let error as TransportError {
                        throw error
                    } catch {
                        throw TransportError(.cancelled, "cancelled \(index)")
                    }
                    throw TransportError(.timedOut, "timed out \(index)")
                } discard: { index in
                    discarded.append(index)
                }
            } catch {
                outcome.error = error
            }
            outcome.took = time.now() - .zero
            outcome.attempts = attempts.all
            outcome.discarded = discarded.all
            return outcome
        }
    }

    @Test func `Seven black holes before the one that lives cost less than three seconds`() throws {
        // B18
        let outcome = try dial(Array(repeating: .blackHole, count: 7) + [.answers(afterMilliseconds: 40)])
        #expect(outcome.winner == 7)
        #expect(outcome.attempts == Array(0...7))
        #expect(outcome.took < .seconds(3))
    }

    @Test func `Refusals cost nothing`() throws {
        let outcome = try dial([.refuses, .refuses, .answers(afterMilliseconds: 5), .blackHole])
        #expect(outcome.winner == 2)
        #expect(outcome.took == .milliseconds(5))
        #expect(outcome.attempts == [0, 1, 2])
    }

    @Test func `A slow first answer beats a slower second one`() throws {
        let outcome = try dial([.answers(afterMilliseconds: 400), .answers(afterMilliseconds: 300)])
        #expect(outcome.winner == 0)
        #expect(outcome.attempts == [0, 1])
    }

    @Test func `Two answers in the same instant give one winner and nothing is left over`() throws {
        let outcome = try dial([.answers(afterMilliseconds: 500), .answers(afterMilliseconds: 250)])
        #expect(outcome.winner == 0 || outcome.winner == 1)
        // The other one was cancelled in its sleep, or handed to be closed.
        #expect(outcome.discarded.count <= 1)
        #expect(!outcome.discarded.contains(outcome.winner ?? -1))
    }

    @Test func `When all fail the first reason decides and all are named`() throws {
        let outcome = try dial([.refuses, .refuses])
        #expect(outcome.error?.code == .refused)
        #expect(outcome.error?.message == "refused 0; refused 1")
        #expect(try dial([]).error?.code == .nameNotFound)
    }

    @Test func `A cancelled dial tries no further address`() async {
        let time = ManualTime()
        let attempts = Numbers()
        let dialing = Task {
            try await dialStaggered((1...5).map { SocketAddress.loopback(port: $0) }, time: time) {
                _ throws(TransportError) in
                attempts.append(0)
                do {
                    try await time.sleep(for: .seconds(60))
                } catch {
                    throw TransportError(.cancelled, "cancelled")
                }
            }
        }
        while time.nextDeadline == nil || attempts.all.isEmpty { await Task.yield() }
        dialing.cancel()
        let error = await #expect(throws: TransportError.self) { try await dialing.value }
        #expect(error?.code == .cancelled)
        #expect(attempts.all.count == 1)
    }
}
