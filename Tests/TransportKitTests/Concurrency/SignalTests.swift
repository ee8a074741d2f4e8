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
