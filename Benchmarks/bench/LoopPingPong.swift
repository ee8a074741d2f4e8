internal import CLinux
internal import TransportIO
internal import TransportKit

/// What an actor on a loop costs beside a plain callback: a UDP ping-pong between two loops in both manners, by turns.
enum LoopPingPong {
    static let commands = [
        Command(
            name: "loop", usage: "[--count 40000] [--rounds 5] [--size 64] [--processor 0, or -1 for any]",
            run: { arguments in try await run(&arguments) })
    ]

    private static func run(_ arguments: inout Arguments) async throws {
        let count = try arguments.flag("count", default: 40_000)
        let rounds = try arguments.flag("rounds", default: 5)
        let size = try arguments.flag("size", default: 64)
        let processor = try arguments.flag("processor", default: 0)
        let left = try EventLoop(name: "left")
        let right = try EventLoop(name: "right")
        if processor >= 0 {
            // A wake-up across processors costs several times what is measured here.
            for loop in [left, right] { loop.execute { tk_pin_thread(Int32(processor)) } }
        }
        var callbacks = Figures()
        var actors = Figures()
        var cancellables = Figures()
        let payload = Bytes(repeating: 7, count: size)
        // The first round warms up and does not count.
        for round in 0...max(rounds, 1) {
            let callback = try await callbackRound(left, right, payload, count)
            let actor = try await actorRound(.continuation, left, right, payload, count)
            let cancellable = try await actorRound(.signal, left, right, payload, count)
            guard round > 0 else { continue }
            callbacks.add(callback, beside: callback)
            actors.add(actor, beside: callback)
            cancellables.add(cancellable, beside: callback)
        }
        await left.shutdown()
        await right.shutdown()
        Bench.report(
            actors.ratios.percentile(0.5), unit: "actor/callback, processor time",
            [
                ("signalRatio", cancellables.ratios.percentile(0.5)),
                ("callbackProcessorMicroseconds", callbacks.processor.percentile(0.5)),
                ("actorProcessorMicroseconds", actors.processor.percentile(0.5)),
                ("signalProcessorMicroseconds", cancellables.processor.percentile(0.5)),
                ("callbackMicroseconds", callbacks.wall.percentile(0.5)),
                ("actorMicroseconds", actors.wall.percentile(0.5)),
                ("signalMicroseconds", cancellables.wall.percentile(0.5)),
            ])
    }

    /// What one there and back takes, in microseconds. Processor time is what other programs on the machine leave alone.
    private struct Cost {
        let wall: Double
        let processor: Double
    }

    private struct Stopwatch {
        private let wall = seconds()
        private let processor = tk_process_time()

        func cost(of count: Int) -> Cost {
            Cost(
                wall: (seconds() - wall) * 1e6 / Double(count),
                processor: Double(tk_process_time() - processor) / 1e3 / Double(count))
        }
    }

    private struct Figures {
        var wall = Samples()
        var processor = Samples()
        var ratios = Samples()

        mutating func add(_ cost: Cost, beside callback: Cost) {
            wall.add(cost.wall)
            processor.add(cost.processor)
            ratios.add(cost.processor / callback.processor)
        }
    }

    // MARK: - Plain callbacks

    /// Answers each datagram from within the call that hands it over.
    ///
    /// Sendable is sound: `left` is touched on the socket's loop alone.
    private final class Callback: UDPSocketHandler, @unchecked Sendable {
        let socket: UDPSocket
        private var left: Int
        let done = Signal()

        init(_ socket: UDPSocket, count: Int) {
            self.socket = socket
            left = count
            socket.handler = self
        }

        func received(
            _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8
        ) {
            left -= 1
            guard left > 0 else { return done.signal() }
            _ = socket.send(datagram, segmentBytes: datagram.count, to: socket.remoteAddress == nil ? remote : nil)
        }

        func receivedAll() {}
        func writable() {}
        func failed(_ error: TransportError) {}
    }

    private static func callbackRound(
        _ left: EventLoop, _ right: EventLoop, _ payload: Bytes, _ count: Int
    ) async throws -> Cost {
        let server = try await right.run { () throws(TransportError) in
            Callback(try UDPSocket.bind(.loopback(), loop: right), count: .max)
        }
        let client = try await left.run { () throws(TransportError) in
            Callback(try UDPSocket.connect(to: server.socket.localAddress, loop: left), count: count)
        }
        let watch = Stopwatch()
        try await left.run { () throws(TransportError) in
            _ = payload.withUnsafeBytes { client.socket.send($0, segmentBytes: $0.count) }
        }
        _ = await client.done.wait()
        let cost = watch.cost(of: count)
        try await left.run { () throws(TransportError) in client.socket.close() }
        try await right.run { () throws(TransportError) in server.socket.close() }
        return cost
    }

    // MARK: - Actors

    /// How an actor waits for its datagrams.
    private enum Manner {
        /// On a bare continuation: the cost of actors and tasks alone.
        case continuation
        /// On a ``Signal``, which can be cancelled, as the sockets of transports do.
        case signal
    }

    /// Takes datagrams for a task that waits for them.
    private final class Inbox: UDPSocketHandler {
        var waiting: [(bytes: Bytes, from: SocketAddress)] = []
        let arrived = Signal()
        var waiter: UnsafeContinuation<Void, Never>?

        func received(
            _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8
        ) {
            waiting.append((Bytes(copying: datagram), remote))
        }

        func receivedAll() {
            if let waiter {
                self.waiter = nil
                waiter.resume()
            } else {
                arrived.signal()
            }
        }

        func writable() {}
        func failed(_ error: TransportError) {}
    }

    /// Owns a socket and waits for its datagrams in a task.
    private actor Player {
        nonisolated let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private let inbox = Inbox()
        private let manner: Manner
        private var isClosed = false
        let socket: UDPSocket

        init(_ socket: UDPSocket, loop: EventLoop, manner: Manner) {
            self.socket = socket
            self.manner = manner
            self.loop = loop
            socket.handler = inbox
        }

        func ask(_ payload: Bytes, times: Int) async {
            for _ in 0..<times {
                send(payload, to: nil)
                _ = await receive()
            }
        }

        func answer() async {
            while let (bytes, remote) = await receive() { send(bytes, to: remote) }
        }

        private func send(_ bytes: Bytes, to remote: SocketAddress?) {
            _ = bytes.withUnsafeBytes { socket.send($0, segmentBytes: $0.count, to: remote) }
        }

        private func receive() async -> (bytes: Bytes, from: SocketAddress)? {
            while inbox.waiting.isEmpty {
                if isClosed { return nil }
                switch manner {
                case .continuation: await withUnsafeContinuation { inbox.waiter = $0 }
                case .signal: _ = await inbox.arrived.wait()
                }
            }
            return inbox.waiting.removeFirst()
        }

        func close() {
            isClosed = true
            socket.close()
            inbox.receivedAll()
        }
    }

    private static func actorRound(
        _ manner: Manner, _ left: EventLoop, _ right: EventLoop, _ payload: Bytes, _ count: Int
    ) async throws -> Cost {
        let server = try await right.run { () throws(TransportError) in
            Player(try UDPSocket.bind(.loopback(), loop: right), loop: right, manner: manner)
        }
        let address = server.socket.localAddress
        let client = try await left.run { () throws(TransportError) in
            Player(try UDPSocket.connect(to: address, loop: left), loop: left, manner: manner)
        }
        let answering = Task(executorPreference: right) { await server.answer() }
        // A task without this preference goes on in the global pool after each wait, before its actor gets it back.
        let asking = Task(executorPreference: left) {
            let watch = Stopwatch()
            await client.ask(payload, times: count)
            return watch.cost(of: count)
        }
        let cost = await asking.value
        await client.close()
        await server.close()
        await answering.value
        return cost
    }
}
