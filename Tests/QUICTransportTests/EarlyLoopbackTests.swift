import Testing
import TransportIO
import TransportKit
import TransportTLS

@testable import QUICTransport

/// Tickets and early data on real sockets.
@Suite struct EarlyLoopbackTests {
    /// A transport, a listener, and how it is dialled: at an address, with its certificate pinned (R16).
    private struct Rig {
        let loop: EventLoop
        let listener: any Listener
        let metrics = InProcessMetrics()
        let log = RecordingLog()
        private let transport: QUICTransport
        private let security: ClientSecurity

        init(_ change: (inout ListenOptions) -> Void) async throws {
            loop = try EventLoop(name: "quic")
            transport = QUICTransport(loop: loop, log: Log(level: .debug, sink: log), metrics: metrics)
            let files = try EnginePair.files.get()
            security = ClientSecurity(pins: [try CertificateHashes(certificateFile: files.certificate).certificate])
            var options = ListenOptions()
            options.security = ServerSecurity(identity: files)
            options.limits.handshakeTimeout = .seconds(120)
            change(&options)
            listener = try await transport.listen(
                Endpoint(scheme: .wss, host: .ipv4(.loopback), port: 0), options: options)
        }

        /// Opens a session, lets a message go there and back, and closes.
        ///
        /// - Returns: what either end knows of it.
        func visit(
            isProven: Bool = false, _ change: (inout DialOptions) -> Void = { _ in }
        ) async throws -> [SocketInfo] {
            var options = DialOptions()
            options.security = security
            options.limits.handshakeTimeout = .seconds(120)
            options.firstFlight = Bytes("hello")
            change(&options)
            let done = metrics["quic.handshakes"]
            async let dialled = transport.dial(ServiceURL(listener.endpoint, target: .root), options: options)
            let far = try await listener.accept()
            // Where it is handed out only then, the handshake is done at both ends.
            if isProven { #expect(metrics["quic.handshakes"] == done + 2) }
            #expect(try await far.receive() == [Message(Bytes("hello"))])
            try await far.send(Message(Bytes("answer")))
            try await (far as? any EarlySocket)?.confirmed()
            let near = try await dialled
            #expect(try await near.receive() == [Message(Bytes("answer"))])
            await near.close()
            // It stays confirmed, and says how it ended to nobody who asks only for that.
            try await (far as? any EarlySocket)?.confirmed()
            await far.close()
            return [near.info, far.info]
        }

        func tearDown() async {
            await listener.close()
            await loop.shutdown()
        }
    }

    // R13, R16, R17
    @Test(arguments: [false, true])
    func `A return is resumed, and its early data taken, where both ends want that`(answersEarly: Bool) async throws {
        let rig = try await Rig { options in
            options.earlyData = true
            options.answersEarly = { _ in answersEarly }
        }
        _ = try await rig.visit()
        let plain = try await rig.visit()
        #expect(plain.map(\.resumed) == [true, true] && plain.map(\.earlyData) == [.none, .none])
        let early = try await rig.visit(isProven: !answersEarly) { $0.earlyData = true }
        #expect(early.map(\.resumed) == [true, true] && early.map(\.earlyData) == [.accepted, .accepted])
        #expect(early.map(\.target) == [.root, .root])
        #expect(rig.metrics["quic.handshakes"] == 6)
        #expect(rig.metrics["quic.handshakes.resumed"] == 4)
        #expect(rig.metrics["quic.earlyData.accepted"] == 2)
        #expect(rig.log.lines.count { $0.message.contains("is open, TLS resumed, early data accepted") } == 2)
        await rig.tearDown()
    }

    @Test func `A listener that takes no early data gets the first words after the handshake`() async throws {
        let taking = try await Rig { $0.earlyData = true }
        _ = try await taking.visit { $0.earlyData = true }
        _ = try await taking.visit { $0.earlyData = true }
        #expect(taking.metrics["quic.earlyData.accepted"] == 2)
        await taking.tearDown()
        let refusing = try await Rig { $0.earlyData = false }
        for _ in 0..<2 {
            #expect(try await refusing.visit { $0.earlyData = true }.map(\.earlyData) == [.none, .none])
        }
        await refusing.tearDown()
    }

    // R17
    @Test func `Without tickets at either end every handshake is a full one`() async throws {
        let without = try await Rig { $0.tickets = false }
        for _ in 0..<2 { #expect(try await without.visit().map(\.resumed) == [false, false]) }
        await without.tearDown()
        let with = try await Rig { _ in }
        for _ in 0..<2 {
            #expect(try await with.visit { $0.tickets = false }.map(\.resumed) == [false, false])
        }
        await with.tearDown()
    }
}
