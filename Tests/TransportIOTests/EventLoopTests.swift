import Synchronization
import Testing
import TransportIO
import TransportKit

@Suite(.timeLimit(.minutes(1))) struct EventLoopTests {
    actor Counter {
        nonisolated let loop: EventLoop
        private(set) var count = 0

        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

        init(loop: EventLoop) { self.loop = loop }

        func increment() -> Bool {
            count += 1
            return loop.isCurrent
        }

        nonisolated func incrementFromLoop() {
            assumeIsolated { $0.count += 1 }
        }
    }

    /// Does something at the end of a turn.
    final class AtEnd: TurnEndHandler {
        private let body: () -> Void

        init(_ body: @escaping () -> Void) { self.body = body }

        func turnEnds() { body() }
    }

    final class Order: Sendable {
        private let kept = Mutex<[Int]>([])
        let changed = Signal()

        func append(_ number: Int) {
            kept.withLock { $0.append(number) }
            changed.signal()
        }

        var numbers: [Int] { kept.withLock { $0 } }
    }

    @Test func `Work runs on the loop's thread in the order it was handed over`() async throws {
        let loop = try EventLoop(name: "test")
        let order = Order()
        #expect(!loop.isCurrent)
        for number in 0..<1000 { loop.execute { order.append(loop.isCurrent ? number : -1) } }
        await loop.shutdown()
        #expect(order.numbers == Array(0..<1000))
    }

    @Test func `Work from many threads is neither lost nor left waiting`() async throws {
        let loop = try EventLoop(name: "test")
        let counter = Counter(loop: loop)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<500 {
                        await withCheckedContinuation { continuation in
                            loop.execute {
                                counter.incrementFromLoop()
                                continuation.resume()
                            }
                        }
                    }
                }
            }
        }
        #expect(await counter.count == 4000)
        await loop.shutdown()
    }

    @Test func `An actor on the loop runs on its thread, entered from a task or from the loop`() async throws {
        try await withLoop { loop in
            let counter = Counter(loop: loop)
            #expect(loop.isCurrent)
            #expect(await counter.increment())
            counter.incrementFromLoop()
            #expect(await counter.count == 2)
            #expect(loop.isCurrent)
        }
        let loop = try EventLoop(name: "test")
        let counter = Counter(loop: loop)
        #expect(await counter.increment())
        #expect(!loop.isCurrent)
        await loop.shutdown()
    }

    @Test func `Timers fire once, in the order of their deadlines, however they were armed`() async throws {
        try await withLoop { loop in
            let order = Order()
            let start = loop.now()
            let timers = (0..<20).map { number in loop.makeTimer { order.append(number) } }
            for number in (0..<20).reversed() { timers[number].arm(at: start + .microseconds(500 * number)) }
            // Moved forward and back, moved later, moved earlier, disarmed.
            timers[3].arm(at: start)
            timers[3].arm(at: start + .milliseconds(20))
            timers[4].arm(at: start + .milliseconds(21))
            timers[19].arm(at: start + .microseconds(1))
            timers[7].disarm()
            while order.numbers.count < 19, await order.changed.wait() {}
            #expect(order.numbers == [0, 19, 1, 2, 5, 6] + Array(8...18) + [3, 4])
            #expect(loop.now() - start >= .milliseconds(21))
            #expect(timers.allSatisfy { $0.deadline == nil })
        }
    }

    @Test func `A timer that fires can arm itself again`() async throws {
        try await withLoop { loop in
            let order = Order()
            var timer: LoopTimer?
            timer = loop.makeTimer {
                order.append(order.numbers.count)
                if order.numbers.count < 3 { timer?.arm(at: loop.now()) }
            }
            timer?.arm(at: loop.now())
            while order.numbers.count < 3, await order.changed.wait() {}
            timer = nil
            #expect(order.numbers == [0, 1, 2])
        }
    }

    @Test func `A sleeper wakes no earlier than its deadline, on a timer past the short waits too`() async throws {
        try await withLoop { loop in
            for milliseconds in [2, 230] {
                let deadline = loop.now() + .milliseconds(milliseconds)
                try await loop.sleep(until: deadline)
                #expect(loop.now() >= deadline)
                #expect(loop.isCurrent)
            }
            try await loop.sleep(until: .zero)
        }
    }

    @Test func `A cancelled sleeper wakes at once`() async throws {
        try await withLoop { loop in
            let sleeper = Task { try await loop.sleep(for: .seconds(3600)) }
            await Task.yield()
            sleeper.cancel()
            await #expect(throws: CancellationError.self) { try await sleeper.value }
        }
    }

    @Test func `A sleeper wakes as if cancelled when the loop is shut down`() async throws {
        let loop = try EventLoop(name: "test")
        let sleeper = Task(executorPreference: loop) { try await loop.sleep(for: .seconds(3600)) }
        await loop.shutdown()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        // One that comes too late does so too.
        await #expect(throws: CancellationError.self) { try await loop.sleep(for: .seconds(3600)) }
    }

    @Test func `Jobs that arrive after the shutdown still run, one at a time`() async throws {
        let loop = try EventLoop(name: "test")
        let counter = Counter(loop: loop)
        await loop.shutdown()
        await loop.shutdown()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<50 { group.addTask { #expect(await counter.increment()) } }
        }
        #expect(await counter.count == 50)
    }

    @Test func `The end of a turn comes after the jobs of the turn and once`() async throws {
        try await withLoop { loop in
            let order = Order()
            loop.execute {
                loop.atEndOfTurn(AtEnd { order.append(3) })
                order.append(1)
                loop.execute { order.append(2) }
            }
            while order.numbers.count < 3, await order.changed.wait() {}
            #expect(order.numbers == [1, 2, 3])
        }
    }

    @Test func `Jobs that beget jobs do not hold up the end of the turn`() async throws {
        try await withLoop { loop in
            let order = Order()
            @Sendable func beget(_ descendants: Int) {
                guard descendants > 0 else { return order.append(2) }
                loop.execute { beget(descendants - 1) }
            }
            loop.execute {
                loop.atEndOfTurn(AtEnd { order.append(1) })
                beget(20)
            }
            while order.numbers.count < 2, await order.changed.wait() {}
            #expect(order.numbers == [1, 2])
        }
    }

    @Test func `The clocks are the machine's`() async throws {
        let loop = try EventLoop(name: "test")
        let first = loop.now()
        #expect(first > .zero)
        #expect(loop.now() >= first)
        #expect(loop.wallNow() > WallTime(seconds: 1_700_000_000))
        await loop.shutdown()
    }
}
