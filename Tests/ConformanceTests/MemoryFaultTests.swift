import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

/// What only the memory transport has: time and scripted faults, exact to the nanosecond.
@Suite struct MemoryFaultTests {
    let simulation = Simulation()
    let network: MemoryNetwork
    let transport: MemoryTransport
    let url: ServiceURL

    init() throws {
        network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
        transport = MemoryTransport(network: network)
        url = try ServiceURL("wss://service.example/talk")
    }

    private func makePair(_ options: DialOptions = DialOptions()) async throws -> (any Socket, any Socket, any Listener)
    {
        let listener = try await transport.listen(url.endpoint, options: ListenOptions())
        let near = try await transport.dial(url, options: options)
        return (near, try await listener.accept(), listener)
    }

    @Test func `A dial takes its round trips and a message takes one way`() throws {
        network.change { $0.delay = .milliseconds(20) }
        try simulation.run { [simulation] in
            let (near, far, _) = try await makePair()
            #expect(simulation.time.now() == .zero + .milliseconds(40))
            try await near.send(Message(Bytes("one")))
            #expect(simulation.time.now() == .zero + .milliseconds(40))
            #expect(try await far.receive() == [Message(Bytes("one"))])
            #expect(simulation.time.now() == .zero + .milliseconds(60))
        }
    }

    @Test func `A close waits until everything has arrived`() throws {
        network.change { $0.delay = .milliseconds(20) }
        try simulation.run { [simulation] in
            let (near, far, _) = try await makePair()
            try await near.send(Message(Bytes("last")))
            #expect(await near.close(.normal, reason: "done") == Close(.normal, reason: "done", origin: .local))
            #expect(simulation.time.now() == .zero + .milliseconds(60))
            #expect(try await far.receive() == [Message(Bytes("last"))])
            await #expect(throws: Close(.normal, reason: "done", origin: .remote)) { try await far.receive() }
        }
    }

    @Test func `A refused dial fails after one round trip with the scripted error`() throws {
        network.change {
            $0.delay = .milliseconds(5)
            $0.refusal = TransportError(.refused, "port unreachable")
        }
        try simulation.run { [simulation, transport, url] in
            await #expect(throws: TransportError(.refused, "port unreachable")) {
                try await transport.dial(url, options: DialOptions())
            }
            #expect(simulation.time.now() == .zero + .milliseconds(10))
        }
    }

    @Test func `A silent dial lasts until its limit`() throws {
        network.change { $0.isSilent = true }
        try simulation.run { [simulation, transport, url] in
            let error = await #expect(throws: TransportError.self) {
                try await transport.dial(url, options: DialOptions())
            }
            #expect(error?.code == .timedOut)
            #expect(simulation.time.now() == .zero + .seconds(10))
        }
    }

    @Test func `A silent dial that is cancelled ends at once`() throws {
        network.change { $0.isSilent = true }
        let code = try simulation.run { [simulation, transport, url] in
            let dial = simulation.start { () -> TransportError.Code? in
                do throws(TransportError) {
                    _ = try await transport.dial(url, options: DialOptions())
                    return nil
                } catch {
                    return error.code
                }
            }
            try await simulation.time.sleep(for: .seconds(1))
            dial.cancel()
            return await dial.value
        }
        #expect(code == .cancelled)
        #expect(simulation.time.now() == .zero + .seconds(1))
    }

    @Test func `A dial goes on when the silence ends`() throws {
        network.change { $0.isSilent = true }
        try simulation.run { [simulation, network] in
            let healed = simulation.start {
                try? await simulation.time.sleep(for: .seconds(2))
                network.change { $0.isSilent = false }
            }
            _ = try await makePair()
            await healed.value
            #expect(simulation.time.now() == .zero + .seconds(2))
        }
    }

    @Test func `What was sent into a silence arrives when it ends, datagrams excepted`() throws {
        try simulation.run { [simulation, network] in
            let (near, far, _) = try await makePair()
            network.change { $0.isSilent = true }
            try await near.send([Message(Bytes("kept")), Message(Bytes("lost"), delivery: .unreliable)])
            let stream = try await near.openStream()
            try await stream.write(Bytes("bytes"))
            let healed = simulation.start {
                try? await simulation.time.sleep(for: .seconds(30))
                network.change { $0.isSilent = false }
            }
            #expect(try await far.receive() == [Message(Bytes("kept"))])
            #expect(try await far.acceptStream().read(upTo: 100) == Bytes("bytes"))
            await healed.value
            #expect(simulation.time.now() == .zero + .seconds(30))
        }
    }

    @Test func `A peer that vanishes is found out by the idle limit`() throws {
        try simulation.run { [simulation, network] in
            let (near, far, _) = try await makePair()
            network.vanish()
            let close = await #expect(throws: Close.self) { try await near.receive() }
            #expect(close?.code == .pathLost)
            #expect(close?.cause?.code == .idle)
            #expect(simulation.time.now() == .zero + .seconds(45))
            _ = far
        }
    }

    @Test func `A cut path ends both ends at once with 1006`() throws {
        try simulation.run { [network] in
            let (near, far, _) = try await makePair()
            #expect(network.openPaths(of: .memory) == 1)
            network.cut()
            for socket in [near, far] {
                let close = await #expect(throws: Close.self) { try await socket.receive() }
                #expect(close?.code == .pathLost)
                #expect(close?.cause?.code == .pathReset)
            }
            #expect(network.openPaths(of: .memory) == 0)
        }
    }

    @Test func `Scripted loss takes the datagrams it names and nothing else`() throws {
        network.change { $0.losesUnreliable = { $0 == 1 } }
        try simulation.run {
            let (near, far, _) = try await makePair()
            for text in ["a", "b", "c"] {
                try await near.send([Message(Bytes(text), delivery: .unreliable), Message(Bytes(text))])
            }
            let received = try await far.receive()
            #expect(received.filter { $0.delivery == .unreliable }.map(\.payload) == [Bytes("a"), Bytes("c")])
            #expect(received.filter { $0.delivery == .control }.map(\.payload) == ["a", "b", "c"].map { Bytes($0) })
        }
    }

    @Test func `A dial whose claim is gone says that it would have worked, and the listener sees nothing`() throws {
        try simulation.run { [simulation, transport, url] in
            let listener = try await transport.listen(url.endpoint, options: ListenOptions())
            var options = DialOptions()
            options.claim = .gone
            let error = await #expect(throws: TransportError.self) {
                try await transport.dial(url, options: options)
            }
            #expect(error?.code == .superseded)  // R41
            let accept = simulation.start { try? await listener.accept() }
            try await simulation.time.sleep(for: .seconds(1))
            accept.cancel()
            #expect(await accept.value == nil)
        }
    }

    @Test func `A first flight is the first message`() throws {
        try simulation.run {
            var options = DialOptions()
            options.firstFlight = Bytes("first")
            let (near, far, _) = try await makePair(options)
            try await near.send(Message(Bytes("second")))
            #expect(try await far.receive().map(\.payload) == [Bytes("first"), Bytes("second")])
        }
    }

    @Test func `A socket that nobody holds ends with 1001`() throws {
        try simulation.run {
            var pair: (any Socket, any Socket, any Listener)? = try await makePair()
            let far = try #require(pair?.1)
            pair = nil
            let close = await #expect(throws: Close.self) { try await far.receive() }
            #expect(close?.code == .goingAway)
        }
    }
}
