import MemoryTransport
import Synchronization
import TransportKit
import TransportKitTesting

@testable import NoiseCarrier

/// A client and a box on a network in memory, and a tap on the path between them.
final class Rig: Sendable {
    let simulation = Simulation()
    let network: MemoryNetwork
    let transport: MemoryTransport
    let url: ServiceURL
    let app = StaticPrivateKey()
    let box = StaticPrivateKey()
    let metrics = InProcessMetrics()
    /// What the client, and what the box, has put on the path.
    let sent = WireTap.Record()
    let answered = WireTap.Record()
    let admits = Mutex(true)
    let admissions = Mutex(0)
    private let settings = Mutex(NoiseSettings())
    private let tampering = Tampering()
    private let made = Mutex<(below: DialingCarrier, carrier: NoiseCarrier)?>(nil)

    init() throws {
        network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
        transport = MemoryTransport(network: network)
        url = try ServiceURL("wss://box.example/")
    }

    /// Changes the settings of both ends, before the carrier is made.
    func change(_ change: (inout NoiseSettings) -> Void) { settings.withLock { change(&$0) } }

    /// Changes what the client sends.
    func tamper(_ change: @escaping @Sendable ([Message]) -> [Message]) { tampering.change.withLock { $0 = change } }

    var carrier: NoiseCarrier { make().carrier }
    var below: DialingCarrier { make().below }

    private func make() -> (below: DialingCarrier, carrier: NoiseCarrier) {
        made.withLock { made in
            if let made { return made }
            let below = DialingCarrier(transport, url: url) { [sent, tampering] socket in
                WireTap(socket, record: sent) { messages in tampering.change.withLock { $0 }(messages) }
            }
            let carrier = NoiseCarrier(
                over: RecordingFlight(below, sent: sent), key: app, peer: box.publicKey,
                settings: settings.withLock { $0 }, executor: simulation.executor, time: simulation.time,
                metrics: metrics, random: { 0.5 })
            made = (below, carrier)
            return (below, carrier)
        }
    }

    func listen() async throws -> any Listener {
        try await transport.listen(url.endpoint, options: ListenOptions())
    }

    /// Accepts one socket and shakes hands as the box.
    func accept(_ listener: any Listener) -> Task<Result<NoiseSocket, Close>, Never> {
        let acceptor = NoiseAcceptor(
            key: box, settings: settings.withLock { $0 }, executor: simulation.executor, time: simulation.time,
            metrics: metrics
        ) { [app, self] peer, _ in
            admissions.withLock { $0 += 1 }
            return peer == app.publicKey && admits.withLock { $0 }
        }
        return simulation.start { [answered] in
            do throws(Close) {
                return .success(try await acceptor.accept(WireTap(try await listener.accept(), record: answered)))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Opens a session whose other end is in the hands of the test.
    func openByHand() async throws -> (socket: any Socket, far: any Socket, session: ByHand) {
        let listener = try await listen()
        let opening = simulation.start { [carrier] in try? await carrier.open() }
        let far = try await listener.accept()
        let message1 = try await receive(1, at: far)[0].payload
        let answer = try ResponderHandshake(key: box, reading: message1).answer()
        try await far.send(Message(answer.message2))
        let session = ByHand(answer.begin())
        guard let socket = await opening.value else { throw Close(.internalError, origin: .local) }
        return (socket, far, session)
    }

    func receive(_ count: Int, at socket: any Socket) async throws -> [Message] {
        var received: [Message] = []
        while received.count < count { received += try await socket.receive() }
        return received
    }

    /// How a call failed; nil where it did not.
    func failure<Value>(_ body: () async throws -> Value) async -> Close? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? Close
        }
    }

    static func finds(_ bytes: Bytes, in messages: [Message]) -> Bool {
        messages.contains { message in Array(message.payload).contains(Array(bytes)) }
    }
}

/// A session that a closure may change.
final class ByHand: @unchecked Sendable {
    // Sendable is sound: the tests use it from one task at a time.
    private var session: NoiseSession

    init(_ session: consuming NoiseSession) {
        self.session = session
    }

    func seal(_ plaintext: Bytes) throws(NoiseError) -> Bytes { try session.seal(plaintext) }
}

private final class Tampering: Sendable {
    let change = Mutex<@Sendable ([Message]) -> [Message]>({ $0 })
}

/// Records the first flight, which travels inside the dial.
private final class RecordingFlight: Carrier {
    private let inner: any Carrier
    private let sent: WireTap.Record

    init(_ inner: any Carrier, sent: WireTap.Record) {
        self.inner = inner
        self.sent = sent
    }

    var capabilities: Capabilities { inner.capabilities }
    var protection: Protection { inner.protection }
    var states: CarrierStates { inner.states }

    func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        if let firstFlight { sent.add([Message(firstFlight)]) }
        return try await inner.open(firstFlight: firstFlight)
    }

    func wake() async { await inner.wake() }

    func close(_ code: CloseCode, reason: String) async { await inner.close(code, reason: reason) }
}
