internal import Synchronization
internal import TransportKit

/// Keeps one session of a carrier open: opens the next when one has ended, with backoff, for as long as it runs (B25).
final class CarrierLink: SessionSource {
    private struct State {
        var socket: (any Socket)?
        var waiting: [Signal] = []
    }

    private let state = Mutex(State())
    private let carrier: any Carrier
    private let time: any TimeSource
    private let name: String
    private let log: Log

    /// Makes a link; it opens nothing before ``run()``.
    init(_ carrier: any Carrier, name: String, time: any TimeSource, log: Log) {
        self.carrier = carrier
        self.name = name
        self.time = time
        self.log = log
    }

    /// Opens sessions until the task is cancelled.
    func run() async {
        var backoff = Backoff()
        while !Task.isCancelled {
            let start = time.now()
            let end: Close
            do {
                let socket = try await carrier.open()
                publish(socket)
                end = await Self.drain(socket)
                publish(nil)
                log.info("\(name): the session ended: \(Words.printable("\(end)"))")
            } catch {
                end = error
                publish(nil)
            }
            guard end.origin != .cancellation, !Task.isCancelled else { return }
            let pause = backoff.ended(after: time.now() - start, fraction: .random(in: 0..<1))
            try? await time.sleep(for: pause)
        }
    }

    /// The open session; waits until there is one.
    func socket() async throws(Close) -> any Socket {
        let signal = Signal()
        while true {
            let socket = state.withLock { state in
                if state.socket == nil { state.waiting.append(signal) }
                return state.socket
            }
            if let socket { return socket }
            guard await signal.wait() else {
                state.withLock { $0.waiting.removeAll { $0 === signal } }
                throw .cancelled
            }
        }
    }

    private func publish(_ socket: (any Socket)?) {
        let waiting = state.withLock { state -> [Signal] in
            state.socket = socket
            guard socket != nil else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for signal in waiting { signal.signal() }
    }

    /// Waits for the end of a session; its messages are nobody's.
    private static func drain(_ socket: any Socket) async -> Close {
        do {
            while true { _ = try await socket.receive() }
        } catch {
            if error.origin == .cancellation { await socket.close(.goingAway, reason: "the host is stopping") }
            return error
        }
    }
}
