import Foundation
import Testing
import TransportIO
import TransportKit
import TransportTLS

@testable import QUICTransport

/// The transport on real sockets; what the conformance suite does not ask.
@Suite struct LoopbackTests {
    /// A transport on a loop of its own and a listener to dial.
    private struct Rig {
        let loop: EventLoop
        let more: [EventLoop]
        let transport: QUICTransport
        let listener: any Listener
        var dialOptions = DialOptions()
        let metrics = InProcessMetrics()

        init(
            log: Log = Log(), moreLoops: Int = 0, _ change: (inout ListenOptions) -> Void = { _ in }
        ) async throws {
            loop = try EventLoop(name: "quic")
            more = try (0..<moreLoops).map { try EventLoop(name: "quic \($0 + 2)") }
            transport = QUICTransport(loop: loop, moreLoops: more, log: log, metrics: metrics)
            let files = try EnginePair.files.get()
            var options = ListenOptions()
            options.security = ServerSecurity(identity: files)
            // Other tests may keep every thread of the pool busy meanwhile.
            options.limits.handshakeTimeout = .seconds(120)
            dialOptions.limits.handshakeTimeout = .seconds(120)
            change(&options)
            listener = try await transport.listen(
                Endpoint(scheme: .wss, host: .ipv4(.loopback), port: 0), options: options)
            dialOptions.security = ClientSecurity(trust: .file(files.certificate))
        }

        func dial(_ options: DialOptions? = nil) async throws -> any Socket {
            try await transport.dial(ServiceURL(listener.endpoint), options: options ?? dialOptions)
        }

        /// The error that a dial ends with.
        func dialError(_ options: DialOptions? = nil) async -> TransportError? {
            do {
                await (try dial(options)).close()
                return nil
            } catch {
                return error as? TransportError
            }
        }

        func tearDown() async {
            await listener.close()
            await loop.shutdown()
            for loop in more { await loop.shutdown() }
        }
    }

    /// A plain UDP socket that keeps what it receives.
    private final class Probe: UDPSocketHandler, @unchecked Sendable {
        // Sendable is sound: only the loop touches it.
        var received: [Bytes] = []
        let arrived = Signal()
        var socket: UDPSocket?

        func received(
            _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8
        ) {
            received.append(Bytes(copying: datagram))
        }
        func receivedAll() { arrived.signal() }
        func writable() {}
        func failed(_ error: TransportError) {}

        /// Sends a datagram to a port of this machine and returns the first answer.
        static func ask(_ bytes: Bytes, port: UInt16, on loop: EventLoop) async throws -> Bytes {
            let probe = LoopBound(Probe(), on: loop)
            let arrived = try await probe.run { probe in
                Result { () throws(TransportError) in
                    let socket = try UDPSocket.connect(to: .loopback(port: port), loop: loop)
                    socket.handler = probe
                    probe.socket = socket
                    _ = bytes.withUnsafeBytes { socket.send($0, segmentBytes: $0.count) }
                    return probe.arrived
                }
            }.get()
            _ = await arrived.wait()
            return await probe.run { probe in
                probe.socket?.close()
                return probe.received[0]
            }
        }
    }

    @Test func `Messages of every kind go there and back`() async throws {
        let rig = try await Rig()
        let near = try await rig.dial()
        let far = try await rig.listener.accept()
        try await near.send(Message(Bytes("hello")))
        #expect(try await far.receive().map(\.payload) == [Bytes("hello")])
        try await far.send([Message(Bytes("bulk"), delivery: .bulk), Message(Bytes("gram"), delivery: .unreliable)])
        var got: [Message] = []
        while got.count < 2 { got += try await near.receive() }
        #expect(Set(got.map(\.delivery)) == [.bulk, .unreliable])
        #expect(await near.close(.policy, reason: "done").code == .policy)
        await rig.tearDown()
    }

    // R19, B05
    @Test func `A question to the path is answered by the peer, and at once where the socket has ended`() async throws {
        let rig = try await Rig()
        let near = try #require(try await rig.dial() as? any PathAwareSocket)
        let far = try #require(try await rig.listener.accept() as? any PathAwareSocket)
        #expect(await near.checkPath(within: .seconds(60)))
        #expect(await far.checkPath(within: .seconds(60)))
        #expect(!near.hasMigrated)
        await near.close()
        #expect(await !near.checkPath(within: .seconds(60)))
        await rig.tearDown()
    }

    // R20, R211
    @Test(arguments: [0, 3])
    func `A client that moves to one socket after the other is followed, whatever loop the kernel chooses`(
        moreLoops: Int
    ) async throws {
        let rig = try await Rig(moreLoops: moreLoops)
        let near = try await rig.dial()
        let far = try await rig.listener.accept()
        for round in 0..<20 {
            try await near.send(Message([UInt8(round)]))
            #expect(try await far.receive().map(\.payload) == [[UInt8(round)]])
            try await far.send(Message([UInt8(round)]))
            #expect(try await near.receive().map(\.payload) == [[UInt8(round)]])
            // The peer gives a new id for each that was used, a moment later.
            while await !rig.transport.pool.run({ $0.all.first?.moveToFreshSocket() ?? false }) {
                try await rig.loop.sleep(for: .milliseconds(1))
            }
        }
        let moved = try #require(near as? any PathAwareSocket)
        #expect(moved.hasMigrated)
        #expect(moved.localAddress != near.info.localAddress)
        if moreLoops > 0 { #expect(rig.metrics["quic.datagrams.handedOver"] > 0) }
        await near.close()
        await rig.tearDown()
    }

    @Test func `Connections are spread over the loops of a listener, and all of them end with it`() async throws {
        let rig = try await Rig(moreLoops: 3)
        var pairs: [(any Socket, any Socket)] = []
        for _ in 0..<16 { pairs.append((try await rig.dial(), try await rig.listener.accept())) }
        for (near, far) in pairs {
            try await near.send(Message(Bytes("hello")))
            #expect(try await far.receive().map(\.payload) == [Bytes("hello")])
        }
        for (near, _) in pairs { await near.close() }
        await rig.tearDown()
    }

    @Test(arguments: [0, 3])
    func `A port that another listener has is refused, however many loops share it`(moreLoops: Int) async throws {
        let rig = try await Rig(moreLoops: moreLoops)
        var options = ListenOptions()
        options.security = ServerSecurity(identity: try EnginePair.files.get())
        let error = await #expect(throws: TransportError.self) {
            _ = try await rig.transport.listen(rig.listener.endpoint, options: options)
        }
        #expect(error?.code == .addressInUse)
        await rig.tearDown()
    }

    // R35, B29
    @Test func `A port where nobody listens refuses at once`() async throws {
        let rig = try await Rig()
        await rig.listener.close()
        let error = await rig.dialError()
        #expect(error?.code == .refused)
        await rig.tearDown()
    }

    // R35
    @Test func `A listener that is full says so at once`() async throws {
        let sink = RecordingLog()
        let rig = try await Rig(log: Log(level: .warning, sink: sink)) { $0.limits.maxConnections = 0 }
        for _ in 0..<20 { #expect(await rig.dialError()?.code == .refused) }
        // However many come.
        #expect((1...2).contains(sink.lines.count), "\(sink.lines.map(\.message))")
        await rig.tearDown()
    }

    // R35
    @Test func `No common protocol, and a certificate nobody trusts, are told apart`() async throws {
        let rig = try await Rig { $0.applicationProtocols = [WireNames.alpnBox] }
        #expect(await rig.dialError()?.code == .noCommonProtocol)
        var options = rig.dialOptions
        options.applicationProtocol = WireNames.alpnBox
        options.security.pins = try [#require(PublicKeyHash(Bytes(repeating: 1, count: 32)))]
        #expect(await rig.dialError(options)?.code == .pinMismatch)
        await rig.tearDown()
    }

    // R38, R41
    @Test func `A dial whose claim is gone says that it would have worked, and leaves nothing`() async throws {
        let rig = try await Rig()
        var options = rig.dialOptions
        options.claim = .gone
        #expect(await rig.dialError(options)?.code == .superseded)
        await rig.tearDown()
        #expect(rig.metrics["quic.connections"] == 0)
    }

    // RFC 9000 §6
    @Test func `An unknown version is answered with those that are known`() async throws {
        let rig = try await Rig()
        // Version 0x0a0b0c0d, ids of four and three bytes, filled up to the size of a first packet.
        let first = Bytes(
            [0xc0, 0x0a, 0x0b, 0x0c, 0x0d, 4, 1, 2, 3, 4, 3, 9, 8, 7] + [UInt8](repeating: 0, count: 1186))
        let answer = try await Probe.ask(first, port: rig.listener.endpoint.port, on: rig.loop)
        #expect(answer[0] & 0x80 == 0x80)
        // Version 0, the ids swapped, then the versions; 1 among them.
        #expect(answer[1..<14] == [0, 0, 0, 0, 3, 9, 8, 7, 4, 1, 2, 3, 4])
        let versions = stride(from: 14, to: answer.count, by: 4).map { answer[$0..<$0 + 4] }
        #expect(versions.contains([0, 0, 0, 1]))
        await rig.tearDown()
    }

    // RFC 9000 §10.3
    @Test func `A packet of no connection is answered with a shorter stateless reset`() async throws {
        let rig = try await Rig()
        let stray = Bytes([0x41] + [UInt8](repeating: 0x77, count: 99))
        let answer = try await Probe.ask(stray, port: rig.listener.endpoint.port, on: rig.loop)
        #expect(answer.count < stray.count && answer.count >= 22)
        #expect(answer[0] & 0xc0 == 0x40)
        await rig.tearDown()
    }

    // B29
    @Test func `One report of ICMP does not end an open connection`() async throws {
        let rig = try await Rig()
        let near = try await rig.dial()
        let far = try await rig.listener.accept()
        await rig.transport.reportToAll(TransportError(.refused, "a late report"))
        try await near.send(Message(Bytes("still here")))
        #expect(try await far.receive().map(\.payload) == [Bytes("still here")])
        await near.close()
        await rig.tearDown()
    }

    // RFC 9000 §8.1.2
    @Test func `A flood of first packets costs little, and whoever is where it says gets through it`() async throws {
        let rig = try await Rig()
        let flood = try (0..<ListenerEndpoint.unprovenLimit * 2).map { _ in try EnginePair().firstPacket() }
        let port = rig.listener.endpoint.port
        let answer = try await Probe.ask(flood[0], port: port, on: rig.loop)
        let sender = LoopBound(Probe(), on: rig.loop)
        for packet in flood.dropFirst() {
            try await sender.run { probe in
                Result { () throws(TransportError) in
                    if probe.socket == nil { probe.socket = try .connect(to: .loopback(port: port), loop: rig.loop) }
                    _ = packet.withUnsafeBytes { probe.socket?.send($0, segmentBytes: $0.count) }
                }
            }.get()
        }
        // The last of them is answered with a Retry: a long header of the type 3.
        let retry = try await Probe.ask(EnginePair().firstPacket(), port: port, on: rig.loop)
        #expect(answer[0] & 0xf0 != 0xf0 && retry[0] & 0xf0 == 0xf0 && retry.count < 256)
        #expect(rig.metrics["quic.connections"] == ListenerEndpoint.unprovenLimit)

        let near = try await rig.dial()
        let far = try await rig.listener.accept()
        try await near.send(Message(Bytes("through")))
        #expect(try await far.receive().map(\.payload) == [Bytes("through")])
        #expect(rig.metrics["quic.connections"] == ListenerEndpoint.unprovenLimit + 2)
        await near.close()
        await sender.run { $0.socket?.close() }
        await rig.tearDown()
    }

    // B29
    @Test func `A service that is gone without a word is noticed long before the idle limit`() async throws {
        let rig = try await Rig()
        let there = try EventLoop(name: "there")
        var options = ListenOptions()
        options.security = ServerSecurity(identity: try EnginePair.files.get())
        let listener = try await QUICTransport(loop: there).listen(
            Endpoint(scheme: .wss, host: .ipv4(.loopback), port: 0), options: options)
        let near = try await rig.transport.dial(ServiceURL(listener.endpoint), options: rig.dialOptions)
        let far = try await listener.accept()
        await there.shutdown()
        try await near.send(Message(Bytes("is anybody there?")))
        let end = await #expect(throws: Close.self) { try await near.receive() }
        #expect(end?.code == .pathLost)
        #expect(end?.cause?.code == .refused)
        withExtendedLifetime(far) {}
        await rig.tearDown()
    }

    @Test func `The end of the loop ends what waits on its sockets`() async throws {
        let rig = try await Rig()
        let near = try await rig.dial()
        let far = try await rig.listener.accept()
        async let end = { () async -> Close? in
            do throws(Close) { _ = try await near.receive() } catch { return error }
            return nil
        }()
        await rig.loop.shutdown()
        #expect(await end?.code == .pathLost)
        await #expect(throws: Close.self) { try await far.receive() }
        await #expect(throws: Close.self) { try await rig.listener.accept() }
        #expect(rig.metrics["quic.connections"] == 0)
    }

    @Test func `A QUIC dial of a plain URL is refused with a reason`() async throws {
        let rig = try await Rig()
        let url = ServiceURL(Endpoint(scheme: .ws, host: .ipv4(.loopback), port: 1))
        await #expect(throws: TransportError.self) { try await rig.transport.dial(url, options: rig.dialOptions) }
        await rig.tearDown()
    }
}

extension QUICTransport {
    /// Tells every connection what the kernel would after an ICMP message.
    fileprivate func reportToAll(_ error: TransportError) async {
        await pool.run { pool in
            for endpoint in pool.all { endpoint.failed(error) }
        }
    }
}
