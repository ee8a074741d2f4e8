import MemoryTransport
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// Two transports on a scripted network, a service that listens on both, and a carrier, in simulated time.
struct DirectWorld {
    let simulation = Simulation()
    let network: MemoryNetwork
    let quic: MemoryTransport
    let webSocket: MemoryTransport
    let memory = InProcessPathMemory()
    let log = RecordingLog()
    let url: ServiceURL
    let carrier: DirectCarrier
    private let context: BuildContext
    private let demotion: any DemotionPolicy
    let place = Box("home")
    private let listeners: [any Listener]

    /// Any `Sendable` box that a closure can read.
    final class Box: Sendable {
        private let value: Mutex<String?>
        init(_ value: String?) { self.value = Mutex(value) }
        var current: String? {
            get { value.withLock { $0 } }
            set { value.withLock { $0 = newValue } }
        }
    }

    /// 20 ms each way: QUIC opens after one round trip, the WebSocket after three.
    init(
        demotion: any DemotionPolicy = DayDemotionPolicy(), _ change: (inout DialOptions) -> Void = { _ in }
    ) throws {
        network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
        quic = MemoryTransport(network: network, name: .quic, capabilities: [.streams, .datagrams], roundTrips: 1)
        webSocket = MemoryTransport(network: network, name: .webSocket, capabilities: [.streams, .text], roundTrips: 3)
        url = try ServiceURL("wss://service.example/v1/app")
        for transport in [TransportName.quic, .webSocket] {
            network.change(transport) { $0.delay = .milliseconds(20) }
        }
        var options = DialOptions()
        change(&options)
        self.demotion = demotion
        context = BuildContext(
            executor: simulation.executor, time: simulation.time, log: Log(level: .debug, sink: log), memory: memory,
            network: { [place] in place.current })
        carrier = try DirectCarrier(
            url: url, transports: [quic, webSocket], options: options, demotion: demotion,
            context: context)
        listeners = try simulation.run { [quic, webSocket, url] in
            [
                try await quic.listen(url.endpoint, options: ListenOptions()),
                try await webSocket.listen(url.endpoint, options: ListenOptions()),
            ]
        }
    }

    /// Another carrier of the same host; the caller closes it.
    func another() throws -> DirectCarrier {
        try DirectCarrier(url: url, transports: [quic, webSocket], demotion: demotion, context: context)
    }

    var record: PathRecord { record(on: "home") }

    /// What the race policy would see there now, suspicions included.
    func record(on network: String) -> PathRecord {
        carrier.ledger.record(of: key(network))
    }

    /// What is kept of it.
    func history(on network: String = "home") -> PathHistory {
        memory.history(of: key(network), at: simulation.time.wallNow())
    }

    func key(_ network: String) -> PathKey { PathKey(network: network, destination: "service.example:443") }

    /// The network remembers that a transport has won.
    func remember(_ transport: TransportName) {
        let now = simulation.time.wallNow()
        memory.change(key("home"), at: now) { $0.won(transport, at: now) }
    }

    func open() throws -> any Socket {
        try simulation.run { [carrier] in try await carrier.open() }
    }

    /// How an `open` fails.
    func failure() throws -> Close? {
        try simulation.run { [carrier] () async -> Close? in
            do throws(Close) { _ = try await carrier.open() } catch { return error }
            return nil
        }
    }

    /// Opens, says which transport carries, and ends the session.
    func connect() throws -> TransportName {
        let socket = try open()
        try simulation.run { _ = await socket.close() }
        return socket.info.transport
    }

    func dials(_ transport: TransportName) -> [Duration] {
        network.dials.filter { $0.transport == transport }.map { $0.start - .zero }
    }

    var openPaths: Int { network.openPaths(of: .quic) + network.openPaths(of: .webSocket) }

    /// The service's end of the oldest session that nobody has taken.
    func accept(_ transport: TransportName) throws -> any Socket {
        try simulation.run { [listeners] in try await listeners[transport == .quic ? 0 : 1].accept() }
    }

    /// Closes everything and lets it come to rest, so that no task outlives the test.
    func end() {
        for transport in [TransportName.quic, .webSocket] { network.change(transport) { $0 = MemoryFaults() } }
        simulation.start { [carrier, listeners] in
            await carrier.close()
            for listener in listeners { await listener.close() }
        }
        simulation.advance(by: .seconds(60))
    }
}

/// A transport that keeps what its dials were told.
final class OptionsRecorder: Transport {
    private let inner: MemoryTransport
    private let told = Mutex<[DialOptions]>([])

    init(inner: MemoryTransport) { self.inner = inner }

    var all: [DialOptions] { told.withLock { $0 } }
    var name: TransportName { inner.name }
    var capabilities: Capabilities { inner.capabilities }

    func protection(of endpoint: Endpoint) -> Protection { inner.protection(of: endpoint) }

    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        told.withLock { $0.append(options) }
        return try await inner.dial(url, options: options)
    }

    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        try await inner.listen(endpoint, options: options)
    }
}
