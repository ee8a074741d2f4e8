import MemoryTransport
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// 500 boxes on one door, each with a link and a carrier of its own, in simulated time (B20, R127).
@Suite struct CrowdTests {
    /// How the door goes.
    enum End: Sendable {
        /// It says so, with this code.
        case told(CloseCode)
        /// It dies: sessions end without a word, and nobody listens any more.
        case killed
    }

    private static let count = 500

    // No 100 ms may see more than one in twenty; a box waits at most a minute once the door is there again.
    @Test(arguments: [
        (End.told(.goingAway), 0.0), (.told(.restarting), 2), (.killed, 0.5), (.killed, 5),
    ])
    func `A door that was restarted gets its boxes back one after the other, and all of them`(
        end: End, seconds: Double
    ) throws {
        let crowd = try Crowd(Self.count)
        defer { crowd.end() }
        try crowd.gather()
        let (gone, dialsBefore) = (crowd.now, crowd.network.dials.count)
        try crowd.stop(end)
        crowd.simulation.advance(by: .milliseconds(Int(seconds * 1000)))
        try crowd.listen()
        crowd.simulation.advance(by: .seconds(61))
        #expect(crowd.door.isComplete(Self.count), "\(crowd.door.sessions) of \(Self.count) are back")
        let peak = Self.peak(crowd.door.arrivals.filter { $0 >= gone }.map { $0 - gone })
        print("gone for \(seconds) s by \(end): at most \(peak) boxes in 100 ms")
        #expect(peak <= Self.count / 20)
        // A full jitter under a ceiling that doubles: a handful of dials each, whatever the outage.
        #expect(crowd.network.dials.count - dialsBefore < Self.count * 8)
    }

    @Test func `A session that does not last starts nobody's backoff over`() throws {  // R81, R136
        let crowd = try Crowd(20)
        defer { crowd.end() }
        try crowd.gather()
        // The door lets everybody in and drops them after a second.
        crowd.door.dropsAfter = .seconds(1)
        try crowd.stop(.killed)
        try crowd.listen()
        let dials = crowd.network.dials.count
        crowd.simulation.advance(by: .seconds(1800))
        let each = Double(crowd.network.dials.count - dials) / 20
        // The waits are half a minute in the mean once the ceiling is a minute.
        #expect((50...85).contains(each), "\(each) dials each in half an hour")
        // One that lasts starts it over: the next end costs no wait.
        crowd.door.dropsAfter = nil
        crowd.simulation.advance(by: .seconds(100))
        #expect(crowd.door.isComplete(20))
        let lost = crowd.now
        crowd.network.cut(.quic)
        crowd.simulation.advance(by: .seconds(1))
        #expect(crowd.door.isComplete(20))
        #expect(crowd.network.dials.filter { $0.start >= lost }.allSatisfy { $0.start == lost })
    }

    /// The most that fall into one step of 100 ms.
    private static func peak(_ times: [Duration]) -> Int {
        let buckets = times.map { Int($0 / .milliseconds(100)) }
        return Dictionary(buckets.map { ($0, 1) }, uniquingKeysWith: +).values.max() ?? 0
    }
}

/// A door and those who keep a session with it.
private final class Crowd: Sendable {
    let simulation = Simulation()
    let network: MemoryNetwork
    let door = Door()
    private let url: ServiceURL
    private let transports: [MemoryTransport]
    private let links: [Link]
    private let tasks = Mutex<[Task<Void, Never>]>([])

    final class Door: Sendable {
        private struct State {
            var listeners: [any Listener] = []
            var sessions: [any Socket] = []
            var arrivals: [Instant] = []
            var dropsAfter: Duration?
        }

        private let state = Mutex(State())
        var dropsAfter: Duration? {
            get { state.withLock { $0.dropsAfter } }
            set { state.withLock { $0.dropsAfter = newValue } }
        }
        /// When each session came, ever.
        var arrivals: [Instant] { state.withLock { $0.arrivals } }
        var sessions: Int { state.withLock { $0.sessions.count } }
        func isComplete(_ count: Int) -> Bool { sessions == count }
        func add(_ listener: any Listener) { state.withLock { $0.listeners.append(listener) } }
        func add(_ socket: any Socket, at now: Instant) {
            state.withLock { state in
                state.sessions.append(socket)
                state.arrivals.append(now)
            }
        }
        func remove(_ socket: any Socket) { state.withLock { state in state.sessions.removeAll { $0 === socket } } }
        func takeAll() -> ([any Listener], [any Socket]) {
            state.withLock { state in
                defer { (state.listeners, state.sessions) = ([], []) }
                return (state.listeners, state.sessions)
            }
        }
    }

    init(_ count: Int) throws {
        let (time, executor) = (simulation.time, simulation.executor)
        network = MemoryNetwork(time: time, executor: executor)
        transports = [
            MemoryTransport(network: network, name: .quic, roundTrips: 1),
            MemoryTransport(network: network, name: .webSocket, roundTrips: 3),
        ]
        for transport in transports { network.change(transport.name) { $0.delay = .milliseconds(20) } }
        url = try ServiceURL("wss://door.example/v1/box")
        let (url, transports) = (url, transports)
        links = try (0..<count).map { number in
            // A seed of its own for each, and the same every time: chance has its bounds only in the mean.
            let random = Mutex(SeededGenerator(seed: UInt64(number) &* 0x5851_f42d_4c95_7f2d))
            let context = BuildContext(executor: executor, time: time, network: { "network \(number)" })
            return Link(
                try DirectCarrier(url: url, transports: transports, context: context), executor: executor, time: time,
                random: { random.withLock { .random(in: 0..<1, using: &$0) } })
        }
    }

    var now: Instant { simulation.time.now() }

    /// Opens the door and lets everybody come, within a few seconds, and stay for a minute.
    func gather() throws {
        try listen()
        for (number, link) in links.enumerated() {
            let time = simulation.time
            let running = simulation.start {
                guard (try? await time.sleep(for: .milliseconds(7 * number))) != nil else { return }
                await link.run()
            }
            let watching = simulation.start {
                while let socket = try? await link.socket(isUrgent: false) {
                    while (try? await socket.receive()) != nil {}
                }
            }
            tasks.withLock { $0 += [running, watching] }
        }
        simulation.advance(by: .seconds(65))
        guard door.isComplete(links.count) else { throw TransportError(.system, "only \(door.sessions) came") }
    }

    /// Opens the door for both transports.
    func listen() throws {
        let (door, time) = (door, simulation.time)
        for transport in transports {
            let listener = try simulation.run { [url] in
                try await transport.listen(url.endpoint, options: ListenOptions())
            }
            door.add(listener)
            simulation.start {
                await withDiscardingTaskGroup { group in
                    while let socket = try? await listener.accept() {
                        door.add(socket, at: time.now())
                        // What has brought something for a minute is no early death.
                        try? await socket.send(Message(Bytes("welcome")))
                        group.addTask {
                            if let limit = door.dropsAfter {
                                try? await time.sleep(for: limit)
                                _ = await socket.close(.internalError, reason: "dropped")
                            } else {
                                while (try? await socket.receive()) != nil {}
                            }
                            door.remove(socket)
                        }
                    }
                }
            }
        }
    }

    /// Takes the door away.
    func stop(_ end: CrowdTests.End) throws {
        let (listeners, sockets) = door.takeAll()
        try simulation.run {
            for listener in listeners { await listener.close() }
            guard case .told(let code) = end else { return }
            await withDiscardingTaskGroup { group in
                for socket in sockets { group.addTask { _ = await socket.close(code, reason: "") } }
            }
        }
        if case .killed = end { for transport in transports { network.cut(transport.name) } }
        simulation.drain()
    }

    func end() {
        for task in tasks.withLock({ $0 }) { task.cancel() }
        let (listeners, _) = door.takeAll()
        simulation.start { for listener in listeners { await listener.close() } }
        simulation.advance(by: .seconds(60))
    }
}
