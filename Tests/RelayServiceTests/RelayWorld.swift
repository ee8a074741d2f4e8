import MemoryTransport
import NoiseCarrier
import Synchronization
import TransportKit
import TransportKitTesting

@testable import RelayCarrier
@testable import RelayService

/// A relay on a network in memory, in simulated time, and those who meet there.
final class RelayWorld: Sendable {
    let simulation: Simulation
    let network: MemoryNetwork
    let transport: MemoryTransport
    let url: ServiceURL
    let secret: RelaySecret
    let log = RecordingLog()
    let app = StaticPrivateKey()
    let box = StaticPrivateKey()
    private let serving = Mutex<[Task<Void, Never>]>([])
    private let listener = Mutex<(any Listener)?>(nil)

    /// The clock starts a minute after an epoch does, unless said otherwise.
    init(secondsIntoEpoch: Int64 = 60) throws {
        let wall = WallTime(seconds: 500_000 * RelayEpoch.seconds + secondsIntoEpoch)
        simulation = Simulation(time: ManualTime(now: .zero + .seconds(1), wall: wall))
        network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
        network.change(.webSocket) { $0.delay = .milliseconds(10) }
        transport = MemoryTransport(network: network, name: .webSocket, capabilities: [.text], roundTrips: 1)
        url = try ServiceURL("wss://relay.example")
        guard let secret = RelaySecret("000102030405060708090a0b0c0d0e0f") else {
            throw Close(.internalError, origin: .local)
        }
        self.secret = secret
    }

    /// How often the relay was dialled.
    var dials: Int { network.dials.count }

    /// Starts the relay, or a stand-in for it.
    func start(
        _ limits: RelayLimits = RelayLimits(), serve: (@Sendable (any Socket) async -> Void)? = nil
    ) async throws {
        let service = RelayService(
            limits: limits, executor: simulation.executor, time: simulation.time, log: Log(level: .debug, sink: log))
        let listener = try await transport.listen(url.endpoint, options: ListenOptions())
        self.listener.withLock { $0 = listener }
        let serve = serve ?? { socket in await service.serve(socket, target: socket.info.target) }
        let task = simulation.start {
            await withDiscardingTaskGroup { group in
                while let socket = try? await listener.accept() {
                    group.addTask {
                        await serve(socket)
                        await socket.close()
                    }
                }
            }
        }
        serving.withLock { $0.append(task) }
    }

    /// Takes the relay away, with everybody on it.
    func stop() async {
        await listener.withLock { $0 }?.close()
        for task in serving.withLock({ $0 }) { task.cancel() }
        for task in serving.withLock({ $0 }) { await task.value }
    }

    func carrier(
        settings: RelaySettings = RelaySettings(), random: @escaping @Sendable () -> Double = { 0.5 }
    ) throws -> RelayCarrier {
        try RelayCarrier(
            url: url, secret: secret, transport: transport, settings: settings, executor: simulation.executor,
            time: simulation.time, log: Log(level: .debug, sink: log), random: random)
    }

    func noise(over carrier: any Carrier, key: StaticPrivateKey? = nil) -> NoiseCarrier {
        NoiseCarrier(
            over: carrier, key: key ?? app, peer: box.publicKey, executor: simulation.executor, time: simulation.time,
            random: { 0.5 })
    }

    /// Joins by hand.
    func join(_ role: RelayWire.Role, epoch: Int64? = nil) async throws -> any Socket {
        let epoch = epoch ?? RelayEpoch.current(at: simulation.time.wallNow())
        let join = RelayJoin(epoch: epoch, handle: secret.handle(of: epoch, info: RelaySettings().info), role: role)
        return try await transport.dial(RelayDial.url(url.endpoint, join), options: DialOptions())
    }

    func run<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) throws -> Result {
        try simulation.run(limit: .seconds(86_400), body)
    }
}

extension Socket {
    /// The next message that is binary, or the next text, whatever comes between.
    func next(_ format: MessageFormat) async throws(Close) -> Bytes {
        while true {
            if let message = try await receive().first(where: { $0.format == format }) { return message.payload }
        }
    }

    /// How it ends.
    func end() async -> Close {
        while true {
            do throws(Close) { _ = try await receive() } catch { return error }
        }
    }
}
