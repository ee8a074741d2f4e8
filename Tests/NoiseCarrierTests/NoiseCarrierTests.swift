import MemoryTransport
import MuxCarrier
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import NoiseCarrier

/// The carrier and the acceptor over sockets in memory, in simulated time.
@Suite struct NoiseCarrierTests {
    let rig: Rig

    init() throws {
        rig = try Rig()
    }

    @Test func `A session opens one round trip after the path and says what it is`() throws {
        rig.network.change { $0.delay = .milliseconds(20) }
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let socket = try #require(try await rig.carrier.open() as? NoiseSocket)
            // Message 1 is the first flight of the path, which took one round trip.
            #expect(rig.simulation.time.now() == .zero + .milliseconds(80))
            let peer = try await accepting.value.get()
            #expect(socket.peer == rig.box.publicKey)
            #expect(peer.peer == rig.app.publicKey)
            #expect(socket.handshakeHash == peer.handshakeHash)
            #expect(rig.carrier.protection == .endToEnd)
            #expect(rig.carrier.capabilities == .datagrams)
            for info in [socket.info, peer.info] {
                #expect(info.protection == .endToEnd)
                #expect(info.capabilities == .datagrams)
                #expect(info.maxMessageBytes == Limits.defaultMaxMessageBytes - 24)
            }
            #expect(rig.carrier.states.latest == .open(CarrierPath(carrier: "", transport: .memory)))
            await #expect(throws: Close.self) { try await socket.openStream() }
            await #expect(throws: Close.self) { try await socket.send(.text("no")) }
            #expect(rig.metrics["noise.sessions"] == 2)
            await socket.close()
            await #expect(throws: Close(.normal, origin: .remote)) { try await peer.receive() }
            #expect(rig.metrics["noise.sessions"] == 0)
            #expect(rig.carrier.states.latest == .idle)
            await #expect(throws: Close(.normal, origin: .local)) { try await socket.send(Message(Bytes("late"))) }
        }
    }

    @Test func `The first flight is the first message, and a payload rides in message 1`() throws {
        rig.change { $0.payload = { Bytes("a pairing code..") } }
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let socket = try await rig.carrier.open(firstFlight: Bytes("hello"))
            try await socket.send(Message(Bytes("second")))
            let peer = try await accepting.value.get()
            #expect(peer.payload == Bytes("a pairing code.."))
            #expect(try await rig.receive(2, at: peer).map(\.payload) == [Bytes("hello"), Bytes("second")])
        }
    }

    // R83
    @Test func `With streams above it a session says hello the moment the handshake is done, and gets an answer`()
        throws
    {
        rig.network.change { $0.delay = .milliseconds(20) }
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let streams = MuxCarrier(
                over: rig.carrier, executor: rig.simulation.executor, time: rig.simulation.time)
            let opening = rig.simulation.start { try? await streams.open() }
            let peer = try await accepting.value.get()
            // Nobody has sent anything: it is a ping (yamux `spec.md`: version 0, type 2, SYN).
            let hello = try await rig.receive(1, at: peer)[0].payload
            #expect(rig.simulation.time.now() == .zero + .milliseconds(100))
            #expect(Array(hello.prefix(4)) == [0, 2, 0, 1])
            // The other end of a stream layer answers it with the same number.
            try await peer.send(Message(Bytes([0, 2, 0, 2, 0, 0, 0, 0] + Array(hello)[8..<12])))
            #expect(await opening.value != nil)
        }
    }

    @Test func `Nothing that is sent can be read on the path`() throws {
        // R71
        let secret = Bytes("a text that nobody else may see")
        rig.change { $0.payload = { secret } }
        #expect(Rig.finds(secret, in: [Message(secret)]))
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let socket = try await rig.carrier.open(firstFlight: secret)
            let peer = try await accepting.value.get()
            for delivery in Delivery.allCases {
                try await socket.send(Message(secret, delivery: delivery))
                try await peer.send(Message(secret, delivery: delivery))
            }
            #expect(try await rig.receive(4, at: peer).allSatisfy { $0.payload == secret })
            #expect(try await rig.receive(3, at: socket).allSatisfy { $0.payload == secret })
            let passed = rig.sent.messages + rig.answered.messages
            // Message 1, the first flight and three more; message 2 and three more.
            #expect(passed.count == 5 + 4)
            #expect(!Rig.finds(secret, in: passed))
            #expect(!Rig.finds(rig.app.publicKey.bytes, in: passed))
        }
    }

    @Test func `A peer that stays silent is asked again on the standing socket`() throws {
        // R72
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let opening = rig.simulation.start { try? await rig.carrier.open() }
            let far = try await listener.accept()
            var times: [Duration] = []
            var asked: Set<Bytes> = []
            for _ in 0..<4 {
                asked.insert(try await rig.receive(1, at: far)[0].payload)
                times.append(rig.simulation.time.now() - .zero)
            }
            // Each wait is 12 s and half of 3, 6 and 12 s.
            let expected: [Duration] = [.zero, .seconds(13.5), .seconds(28.5), .seconds(46.5)]
            #expect(times == expected)
            #expect(asked.count == 4)
            try await rig.simulation.time.sleep(for: .seconds(14))
            guard case .waiting(let until, let close) = rig.carrier.states.latest else {
                Issue.record("\(rig.carrier.states.latest)")
                return
            }
            #expect(close.code == .tooSlow)
            #expect(until == .zero + .seconds(70.5))
            let message1 = try await rig.receive(1, at: far)[0].payload
            #expect(rig.carrier.states.latest == .connecting(attempt: 5))
            try await far.send(Message(ResponderHandshake(key: rig.box, reading: message1).answer().message2))
            #expect(await opening.value != nil)
            #expect(rig.network.dials.count == 1)
            #expect(rig.metrics["noise.handshakes.unanswered"] == 4)
        }
    }

    @Test func `A wake ends the pause, and the first handshake after it has 3 s`() throws {
        // R61, R72
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let opening = rig.simulation.start { try? await rig.carrier.open() }
            let far = try await listener.accept()
            _ = try await rig.receive(1, at: far)
            try await rig.simulation.time.sleep(for: .seconds(13))
            await rig.carrier.wake()
            _ = try await rig.receive(1, at: far)
            #expect(rig.simulation.time.now() == .zero + .seconds(13))
            #expect(rig.below.wakes == 1)
            // 3 s and half of the first pause, which starts over.
            _ = try await rig.receive(1, at: far)
            #expect(rig.simulation.time.now() == .zero + .milliseconds(17_500))
            opening.cancel()
            #expect(await opening.value == nil)
        }
    }

    @Test func `What is not the answer is ignored, and what comes with the answer is received`() throws {
        // R73
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let opening = rig.simulation.start { try? await rig.carrier.open() }
            let far = try await listener.accept()
            let message1 = try await rig.receive(1, at: far)[0].payload
            let answer = try ResponderHandshake(key: rig.box, reading: message1).answer()
            for stray in [Bytes(), Bytes([UInt8](repeating: 1, count: 48)), answer.message2.flipped(at: 47), message1] {
                try await far.send(Message(stray))
            }
            let message2 = answer.message2
            var session = answer.begin()
            try await far.send([message2, session.seal(Bytes("at once"))].map { Message($0) })
            let socket = try #require(await opening.value)
            #expect(try await socket.receive() == [Message(Bytes("at once"))])
            #expect(rig.metrics["noise.messages.dropped"] == 4)
        }
    }

    @Test func `A handshake ends with the socket below it`() throws {
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let opening = rig.simulation.start { await rig.failure { try await rig.carrier.open() } }
            let far = try await listener.accept()
            _ = try await rig.receive(1, at: far)
            await far.close(.refused, reason: "not here")
            #expect(await opening.value == Close(.refused, reason: "not here", origin: .remote))
            #expect(rig.carrier.states.latest == .idle)
        }
    }

    @Test func `A cancelled open closes the socket below, and the carrier is of use afterwards`() throws {
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let opening = rig.simulation.start { await rig.failure { try await rig.carrier.open() } }
            let far = try await listener.accept()
            _ = try await rig.receive(1, at: far)
            opening.cancel()
            #expect(await opening.value == .cancelled)
            let end = await rig.failure { try await far.receive() }
            #expect(end?.code == .normal)
            let accepting = rig.accept(listener)
            _ = try await rig.carrier.open()
            _ = try await accepting.value.get()
        }
    }

    @Test func `Closing the carrier ends its handshakes and its sessions`() throws {
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let socket = try await rig.carrier.open()
            let peer = try await accepting.value.get()
            let opening = rig.simulation.start { await rig.failure { try await rig.carrier.open() } }
            let far = try await listener.accept()
            _ = try await rig.receive(1, at: far)
            await rig.carrier.close(.goingAway, reason: "stopping")
            let close = Close(.goingAway, reason: "stopping", origin: .local)
            #expect(await opening.value == close)
            #expect(await rig.failure { try await socket.receive() } == close)
            #expect(await rig.failure { try await rig.carrier.open() } == close)
            #expect(rig.carrier.states.latest == .closed(close))
            let told = Close(.goingAway, reason: "stopping", origin: .remote)
            #expect(await rig.failure { try await peer.receive() } == told)
            #expect(await rig.failure { try await far.receive() } == told)
        }
    }

    // MARK: - What does not belong to the session

    @Test func `A replay that came as a datagram is dropped, one on a stream ends the session`() throws {
        // R65
        try rig.simulation.run { [rig] in
            let (socket, far, session) = try await rig.openByHand()
            let messages = try (0..<3).map { try session.seal(Bytes("\($0)")) }
            try await far.send(messages.map { Message($0, delivery: .unreliable) })
            for _ in 0..<3 { try await far.send(Message(messages[1], delivery: .unreliable)) }
            try await far.send(Message(messages[2].flipped(at: 20), delivery: .unreliable))
            try await far.send(Message(Bytes("short"), delivery: .unreliable))
            try await far.send(Message(try session.seal(Bytes("3"))))
            let received = try await rig.receive(4, at: socket)
            #expect(received.map(\.payload) == (0..<4).map { Bytes("\($0)") })
            #expect(received.map(\.delivery) == [.unreliable, .unreliable, .unreliable, .control])
            #expect(rig.metrics["noise.messages.dropped"] == 5)

            // What came before it is delivered first, what comes after it never.
            let last = [try session.seal(Bytes("4")), messages[0], try session.seal(Bytes("5"))]
            try await far.send(last.map { Message($0) })
            #expect(try await socket.receive().map(\.payload) == [Bytes("4")])
            let end = await rig.failure { try await socket.receive() }
            #expect(end?.code == .protocolError)
            #expect(end?.origin == .local)
            #expect(await rig.failure { try await socket.send(Message(Bytes("x"))) } == end)
            #expect(await socket.close(.normal, reason: "") == end)
            #expect(await rig.failure { try await far.receive() }?.code == .protocolError)
        }
    }

    @Test(arguments: [0, 1, 2, 3])
    func `A broken message on a stream ends the session`(kind: Int) throws {
        try rig.simulation.run { [rig] in
            let (socket, far, session) = try await rig.openByHand()
            let sealed = try session.seal(Bytes("hello"))
            let broken = [sealed.flipped(at: 9), Bytes(), sealed.prefix(23), Bytes([UInt8](repeating: 255, count: 30))]
            try await far.send(Message(broken[kind], delivery: .bulk))
            #expect(await rig.failure { try await socket.receive() }?.code == .protocolError)
            #expect(await rig.failure { try await far.receive() }?.code == .protocolError)
            #expect(rig.metrics["noise.sessions"] == 0)
        }
    }

    @Test func `On a path that sessions share, what belongs to another is dropped and counted`() throws {
        // R74
        rig.change { $0.foreignMessages = .areDropped }
        try rig.simulation.run { [rig] in
            let (socket, far, session) = try await rig.openByHand()
            let first = try session.seal(Bytes("first"))
            let foreign = [
                first, first, first.flipped(at: 12), Bytes("short"), Bytes([UInt8](repeating: 255, count: 30)),
            ]
            try await far.send(foreign.map { Message($0) })
            try await far.send(Message(try session.seal(Bytes("second"))))
            #expect(try await rig.receive(2, at: socket).map(\.payload) == [Bytes("first"), Bytes("second")])
            #expect(rig.metrics["noise.messages.dropped"] == 4)
        }
    }

    @Test func `A path that drops, doubles, delays and changes datagrams delivers each once or not at all`() throws {
        let generator = Mutex((random: SeededGenerator.announced(), held: [Message]()))
        rig.tamper { messages in
            generator.withLock { state in
                var passed: [Message] = []
                for message in messages {
                    guard message.delivery == .unreliable else {
                        passed.append(message)
                        continue
                    }
                    switch Int.random(in: 0..<6, using: &state.random) {
                    case 0: break
                    case 1: passed += [message, message]
                    case 2: state.held.append(message)
                    case 3:
                        let place = Int.random(in: 0..<message.payload.count, using: &state.random)
                        passed.append(Message(message.payload.flipped(at: place), delivery: .unreliable))
                    default: passed.append(message)
                    }
                    if state.held.count > 30 { passed += state.held.shuffled(using: &state.random) }
                    if state.held.count > 30 { state.held.removeAll() }
                }
                return passed
            }
        }
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let socket = try await rig.carrier.open()
            let peer = try await accepting.value.get()
            var received: [Message] = []
            for number in 0..<600 {
                try await socket.send(Message(Bytes("\(number)"), delivery: .unreliable))
                if number % 100 == 99 {
                    try await socket.send(Message(Bytes("control \(number)")))
                    while received.last?.delivery != .control { received += try await peer.receive() }
                    received.append(Message(Bytes("seen"), delivery: .unreliable))
                }
            }
            let numbers = received.filter { $0.delivery == .unreliable && $0.payload != Bytes("seen") }.map(\.payload)
            #expect(Set(numbers).count == numbers.count)
            #expect(numbers.allSatisfy { String(validating: $0).flatMap { Int($0) } != nil })
            #expect(numbers.count > 200)
            #expect(received.filter { $0.delivery == .control }.count == 6)
        }
    }

    @Test func `Streams over a sealed session work as they do elsewhere`() throws {
        try rig.simulation.run { [rig] in
            let (executor, time) = (rig.simulation.executor, rig.simulation.time)
            let muxed = MuxCarrier(over: rig.carrier, executor: executor, time: time)
            #expect(muxed.protection == .endToEnd)
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let near = try await muxed.open()
            let far = await YamuxMultiplexer(executor: executor, time: time)
                .wrap(try await accepting.value.get(), isDialer: false, limits: Limits())
            let stream = try await near.openStream()
            let sent = Bytes((0..<500_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
            let writing = rig.simulation.start {
                try? await stream.write(sent)
                try? await stream.finish()
            }
            let accepted = try await far.acceptStream()
            var received = Bytes()
            while let piece = try await accepted.read(upTo: 65_536) { received.append(contentsOf: piece) }
            await writing.value
            #expect(received == sent)
        }
    }

    // MARK: - The acceptor

    @Test func `A stranger gets silence, and 4408 when patience is over`() throws {
        // R133
        let stranger = StaticPrivateKey()
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let near = try await rig.transport.dial(rig.url, options: DialOptions())
            let message1 = try InitiatorHandshake(key: stranger, peer: rig.box.publicKey).message1
            try await near.send([message1, Bytes("?"), message1.flipped(at: 3)].map { Message($0) })
            let end = await rig.failure { try await near.receive() }
            #expect(rig.simulation.time.now() == .zero + .seconds(30))
            #expect(end?.code == .tooSlow)
            #expect(await rig.failure { try await accepting.value.get() }?.code == .tooSlow)
            #expect(rig.admissions.withLock { $0 } == 1)
        }
    }

    @Test func `What a stranger can cost is bounded`() throws {
        let stranger = StaticPrivateKey()
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            _ = rig.accept(listener)
            let near = try await rig.transport.dial(rig.url, options: DialOptions())
            for _ in 0..<100 {
                let message1 = try InitiatorHandshake(key: stranger, peer: rig.box.publicKey).message1
                try await near.send(Message(message1))
            }
            _ = await rig.failure { try await near.receive() }
            #expect(rig.admissions.withLock { $0 } == NoiseAcceptor.attemptLimit)
        }
    }

    @Test func `Who is let in later is answered on the socket that stands`() throws {
        rig.admits.withLock { $0 = false }
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            let accepting = rig.accept(listener)
            let opening = rig.simulation.start { try? await rig.carrier.open() }
            try await rig.simulation.time.sleep(for: .seconds(5))
            rig.admits.withLock { $0 = true }
            let socket = try #require(await opening.value)
            #expect(rig.simulation.time.now() == .zero + .milliseconds(13_500))
            try await socket.send(Message(Bytes("finally")))
            let peer = try await accepting.value.get()
            #expect(try await rig.receive(1, at: peer)[0].payload == Bytes("finally"))
        }
    }

    @Test func `A recorded message 1 that is sent again yields a session that nobody can use`() throws {
        try rig.simulation.run { [rig] in
            let listener = try await rig.listen()
            var accepting = rig.accept(listener)
            _ = try await rig.carrier.open()
            _ = try await accepting.value.get()
            let recorded = rig.sent.messages[0].payload
            accepting = rig.accept(listener)
            let thief = try await rig.transport.dial(rig.url, options: DialOptions())
            try await thief.send(Message(recorded))
            let peer = try await accepting.value.get()
            try await thief.send(rig.sent.messages[0])
            #expect(await rig.failure { try await peer.receive() }?.code == .protocolError)
        }
    }
}
