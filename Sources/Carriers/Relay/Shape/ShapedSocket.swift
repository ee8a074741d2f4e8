internal import Synchronization
internal import TransportKit

/// The socket to the relay in a constant shape: one frame of one size every so often, from its opening to its end.
final class ShapedSocket: Socket {
    private struct State {
        var shaper: Shaper
        var end: Close?
        var putting: [Signal] = []
        var closing: Signal?
    }

    let info: SocketInfo
    private let inner: any Socket
    private let pacing: Task<Void, Never>
    private let shared: Shared
    private let time: any TimeSource
    private let executor: any TaskExecutor
    private let limits: Limits

    /// What the pace and the socket share.
    private final class Shared: Sendable {
        let state: Mutex<State>

        init(_ shaper: Shaper) {
            state = Mutex(State(shaper: shaper))
        }

        func next() -> Bytes {
            let (frame, waiting) = state.withLock { state in
                let frame = state.shaper.next()
                defer { state.putting = [] }
                return (frame, state.putting + (state.shaper.backlog == 0 ? [state.closing].compactMap(\.self) : []))
            }
            for signal in waiting { signal.signal() }
            return frame
        }

        func end(_ close: Close) {
            let waiting = state.withLock { state in
                state.end = state.end ?? close
                defer { state.putting = [] }
                return state.putting + [state.closing].compactMap(\.self)
            }
            for signal in waiting { signal.signal() }
        }
    }

    init(
        _ inner: any Socket, shaper: Shaper, interval: Duration, limits: Limits, executor: any TaskExecutor,
        time: any TimeSource
    ) {
        self.inner = inner
        self.limits = limits
        self.time = time
        self.executor = executor
        info = inner.info
        let shared = Shared(shaper)
        self.shared = shared
        pacing = Task(executorPreference: executor) {
            var next = time.now()
            while !Task.isCancelled {
                do throws(Close) { try await inner.send(Message(shared.next())) } catch { return shared.end(error) }
                // What is late is left out, so that no burst tells of it.
                repeat { next = next + max(interval, .milliseconds(1)) } while next <= time.now()
                guard (try? await time.sleep(until: next)) != nil else { return }
            }
        }
    }

    deinit {
        pacing.cancel()
    }

    func send(_ messages: [Message]) async throws(Close) {
        let signal = Signal()
        while true {
            let isKept = try shared.state.withLock { state throws(Close) in
                if let end = state.end { throw end }
                guard state.shaper.backlog < limits.sendBufferBytes else {
                    state.putting.append(signal)
                    return false
                }
                for message in messages { state.shaper.put(message.payload) }
                return true
            }
            if isKept { return }
            guard await signal.wait() else {
                shared.state.withLock { state in state.putting.removeAll { $0 === signal } }
                throw .cancelled
            }
        }
    }

    func receive() async throws(Close) -> [Message] {
        while true {
            let batch: [Message]
            do throws(Close) {
                batch = try await inner.receive()
            } catch {
                if error.origin != .cancellation { shared.end(error) }
                throw error
            }
            let messages = batch.flatMap { message -> [Message] in
                switch message.format {
                case .text: [message]
                case .binary: shared.state.withLock { $0.shaper.read(message.payload) }.map { Message($0) }
                }
            }
            if !messages.isEmpty { return messages }
        }
    }

    func openStream() async throws(Close) -> any Stream { try await inner.openStream() }

    func acceptStream() async throws(Close) -> any Stream { try await inner.acceptStream() }

    /// What was accepted leaves at the pace of everything else, as far as the linger time goes.
    func close(_ code: CloseCode, reason: String) async -> Close {
        let signal = Signal()
        let mustWait = shared.state.withLock { state in
            state.closing = signal
            return state.shaper.backlog > 0 && state.end == nil
        }
        if mustWait {
            let timer = Task(executorPreference: executor) { [time, linger = limits.linger] in
                guard (try? await time.sleep(for: linger)) != nil else { return }
                signal.signal()
            }
            _ = await signal.wait()
            timer.cancel()
        }
        pacing.cancel()
        shared.end(Close(code, reason: reason, origin: .local))
        return await inner.close(code, reason: reason)
    }
}

extension ShapedSocket: PathAwareSocket {
    private var pathAware: (any PathAwareSocket)? { inner as? any PathAwareSocket }

    var hasMigrated: Bool { pathAware?.hasMigrated ?? false }

    var localAddress: SocketAddress? { pathAware?.localAddress ?? info.localAddress }

    func checkPath(within limit: Duration) async -> Bool {
        await pathAware?.checkPath(within: limit) ?? false
    }
}
