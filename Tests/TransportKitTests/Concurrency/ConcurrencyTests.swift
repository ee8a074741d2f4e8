import Testing
import TransportKit
import TransportKitTesting

@Suite struct SignalTests {
    @Test func `A signal given before the wait is kept, and several are kept as one`() async {
        let signal = Signal()
        signal.signal()
        signal.signal()
        #expect(await signal.wait())
        let waiter = Task { await signal.wait() }
        waiter.cancel()
        #expect(await waiter.value == false)
    }

    @Test func `A task that is cancelled before it waits does not wait`() throws {
        let simulation = Simulation()
        let signal = Signal()
        let waiter = simulation.start { await signal.wait() }
        waiter.cancel()
        #expect(try simulation.run { await waiter.value } == false)
    }

    @Test func `A signal that meets a cancellation wakes once and is never lost`() async {
        for _ in 0..<2000 {
            let signal = Signal()
            let waiter = Task { await signal.wait() }
            async let signalling: Void = signal.signal()
            waiter.cancel()
            let isWoken = await waiter.value
            await signalling
            // Where the cancellation won, the signal is still there for the next wait.
            if !isWoken { #expect(await Task { await signal.wait() }.value) }
        }
    }
}

@Suite struct InboxTests {
    @Test func `What was put comes out in order, all of it or one at a time`() async throws {
        let inbox = Inbox<Int>()
        for number in 0..<5 { inbox.put(number) }
        #expect(try await inbox.takeFirst() == 0)
        #expect(try await inbox.takeAll() == [1, 2, 3, 4])
    }

    @Test func `What came before the end is taken first, and the first end stays`() async throws {
        let inbox = Inbox<Int>()
        inbox.put(1)
        let end = Close(.normal, reason: "done", origin: .remote)
        #expect(inbox.end(end) == end)
        #expect(inbox.end(.cancelled) == end)
        #expect(!inbox.put(2))
        #expect(try await inbox.takeFirst() == 1)
        for _ in 0..<2 { await #expect(throws: end) { try await inbox.takeAll() } }
    }

    @Test func `A second taker is told off, and the first gets what comes`() throws {
        let simulation = Simulation()
        try simulation.run {
            let inbox = Inbox<Int>()
            let first = simulation.start { try? await inbox.takeFirst() }
            try await simulation.time.sleep(for: .seconds(1))
            let misuse = await #expect(throws: Close.self) { try await inbox.takeFirst() }
            #expect(misuse?.cause?.code == .misuse)
            inbox.put(7)
            #expect(await first.value == 7)
            inbox.put(8)
            #expect(try await inbox.takeFirst() == 8)
        }
    }

    @Test func `A cancelled taker loses nothing`() async throws {
        let inbox = Inbox<Int>()
        var received: [Int] = []
        for number in 0..<2000 {
            let taker = Task { try? await inbox.takeAll() }
            async let putting = inbox.put(number)
            taker.cancel()
            received += await taker.value ?? []
            #expect(await putting)
        }
        inbox.end(.cancelled)
        if let rest = try? await inbox.takeAll() { received += rest }
        #expect(received == Array(0..<2000))
    }

    @Test func `A full inbox makes its reader wait until there is room, or no use`() throws {
        let simulation = Simulation()
        try simulation.run {
            let inbox = Inbox<Int>(limit: 10)
            inbox.put(1, weight: 9)
            #expect(await inbox.waitForRoom())
            inbox.put(2, weight: 9)
            #expect(inbox.isFull)
            let reader = simulation.start { await inbox.waitForRoom() }
            try await simulation.time.sleep(for: .seconds(1))
            _ = try await inbox.takeFirst()
            #expect(await reader.value)
            inbox.put(3, weight: 9)
            let last = simulation.start { await inbox.waitForRoom() }
            try await simulation.time.sleep(for: .seconds(1))
            inbox.end(.cancelled)
            #expect(await last.value == false)
        }
    }
}

@Suite struct OutboxTests {
    let close = Close(.normal, reason: "done", origin: .local)

    @Test func `What was put leaves in order, and only the next call makes room`() throws {
        let simulation = Simulation()
        try simulation.run {
            let outbox = Outbox<Int>(limit: 10)
            try await outbox.put(1, weight: 9)
            try await outbox.put(2, weight: 9)
            let third = simulation.start { try? await outbox.put(3, weight: 1) }
            #expect(await outbox.next() == [1, 2])
            // They are being written: still no room.
            try await simulation.time.sleep(for: .seconds(1))
            let next = simulation.start { await outbox.next() }
            #expect(await next.value == [3])
            await third.value
        }
    }

    @Test func `Many putters all get their turn`() throws {
        let simulation = Simulation()
        let numbers = try simulation.run {
            let outbox = Outbox<Int>(limit: 1)
            let putters = (0..<50).map { number in simulation.start { try? await outbox.put(number) } }
            var numbers: [Int] = []
            while numbers.count < 50, let next = await outbox.next() { numbers += next }
            for putter in putters { await putter.value }
            return numbers
        }
        #expect(numbers.sorted() == Array(0..<50))
    }

    @Test func `A cancelled put has put nothing and holds nobody up`() async throws {
        for _ in 0..<500 {
            let outbox = Outbox<Int>(limit: 1)
            try await outbox.put(0)
            let cancelled = Task { () -> Bool in (try? await outbox.put(1)) != nil }
            let patient = Task { () -> Bool in (try? await outbox.put(2)) != nil }
            async let cancelling: Void = cancelled.cancel()
            var numbers: [Int] = []
            while !numbers.contains(2), let next = await outbox.next() { numbers += next }
            await cancelling
            let isPut = await cancelled.value
            #expect(await patient.value)
            outbox.finish(close)
            while let next = await outbox.next() { numbers += next }
            #expect(numbers.sorted() == (isPut ? [0, 1, 2] : [0, 2]))
        }
    }

    @Test func `After finish what waits still leaves, then the last element`() throws {
        let simulation = Simulation()
        try simulation.run { [close] in
            let outbox = Outbox<Int>(limit: 1)
            try await outbox.put(1)
            let waiting = simulation.start { () -> Close? in
                do throws(Close) { try await outbox.put(2) } catch { return error }
                return nil
            }
            try await simulation.time.sleep(for: .seconds(1))
            outbox.finish(close, last: 9)
            outbox.finish(.cancelled, last: 10)
            #expect(await waiting.value == close)
            await #expect(throws: close) { try await outbox.put(3) }
            #expect(await outbox.next() == [1, 9])
            #expect(await outbox.next() == nil)
            #expect(await outbox.next() == nil)
        }
    }

    @Test func `An end drops what waits, after a finish too`() async throws {
        let outbox = Outbox<Int>(limit: 10)
        try await outbox.put(1)
        outbox.finish(close)
        outbox.end(.cancelled)
        await #expect(throws: close) { try await outbox.put(2) }
        #expect(await outbox.next() == nil)
    }
}
