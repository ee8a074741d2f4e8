internal import Synchronization
internal import TransportKit

/// A session of one of the two carriers. Every call goes straight through; what proves the carrier, or ends it, is told.
final class FallbackSocket: Socket {
    let id: UInt64
    private let inner: any Socket
    private let state: FallbackState
    /// Whether something has arrived since the session opened, or since the last wake.
    private let isProven: Atomic<Bool>
    private let hasEnded = Atomic(false)
    private let isClosing = Atomic(false)
    /// What had arrived before the session was in anybody's hands.
    private let early: Mutex<[Message]>

    /// - Parameters:
    ///   - isWatched: whether what arrives is worth telling.
    ///   - early: what has arrived on it already.
    init(_ inner: any Socket, id: UInt64, isWatched: Bool, early: [Message], state: FallbackState) {
        self.inner = inner
        self.id = id
        self.state = state
        isProven = Atomic(!isWatched)
        self.early = Mutex(early)
    }

    deinit {
        ended(nil)
    }

    var info: SocketInfo { inner.info }

    func send(_ messages: [Message]) async throws(Close) {
        if !messages.isEmpty { asks() }
        do throws(Close) { try await inner.send(messages) } catch { throw noted(error) }
    }

    func receive() async throws(Close) -> [Message] {
        do throws(Close) {
            let first = takeEarly()
            let messages = first.isEmpty ? try await inner.receive() : first
            arrived()
            return messages
        } catch {
            throw noted(error)
        }
    }

    func openStream() async throws(Close) -> any Stream {
        do throws(Close) {
            return FallbackStream(try await inner.openStream(), socket: self)
        } catch {
            throw noted(error)
        }
    }

    func acceptStream() async throws(Close) -> any Stream {
        do throws(Close) {
            let stream = try await inner.acceptStream()
            arrived()
            return FallbackStream(stream, socket: self)
        } catch {
            throw noted(error)
        }
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        isClosing.store(true, ordering: .relaxed)
        let close = await inner.close(code, reason: reason)
        ended(close.origin == .remote ? close : nil)
        return close
    }

    private func takeEarly() -> [Message] {
        early.withLock { early in
            defer { early = [] }
            return early
        }
    }

    // MARK: - What is told

    /// Ends it because the other carrier takes over.
    func leave(_ reason: String) async {
        isClosing.store(true, ordering: .relaxed)
        _ = await inner.close(.goingAway, reason: reason)
        ended(nil)
    }

    /// The network has changed: what has arrived so far proves nothing any more.
    func doubt() {
        isProven.store(false, ordering: .relaxed)
    }

    /// Something is sent that may be answered.
    func asks() {
        guard !isProven.load(ordering: .relaxed) else { return }
        state.tell { $0.asked(id, now: $1) }
    }

    /// Something has arrived.
    func arrived() {
        guard !isProven.load(ordering: .relaxed), !isProven.exchange(true, ordering: .relaxed) else { return }
        state.tell { machine, _ in machine.arrived(id) }
    }

    /// Looks at what a call threw.
    func noted(_ close: Close) -> Close {
        switch close.origin {
        case .remote, .path: ended(close)
        case .local:
            // A refused call has a cause, or says that a message was too long; neither ends the session.
            if close.cause == nil, close.code != .tooBig {
                ended(isClosing.load(ordering: .relaxed) ? nil : close)
            }
        case .cancellation: break
        }
        return close
    }

    /// - Parameter close: nil where the owner has ended it.
    private func ended(_ close: Close?) {
        guard !hasEnded.exchange(true, ordering: .relaxed) else { return }
        state.tell { $0.ended(id, close, now: $1) }
        state.remove(id)
    }
}

extension FallbackSocket: PathAwareSocket {
    private var pathAware: (any PathAwareSocket)? { inner as? any PathAwareSocket }

    var hasMigrated: Bool { pathAware?.hasMigrated ?? false }

    var localAddress: SocketAddress? { pathAware?.localAddress ?? info.localAddress }

    func checkPath(within limit: Duration) async -> Bool {
        await pathAware?.checkPath(within: limit) ?? false
    }
}

/// A stream of such a session: what it reads proves the carrier as a message does.
private final class FallbackStream: Stream {
    private let inner: any Stream
    private let socket: FallbackSocket

    init(_ inner: any Stream, socket: FallbackSocket) {
        self.inner = inner
        self.socket = socket
    }

    var id: UInt64 { inner.id }

    func read(upTo limit: Int) async throws(StreamError) -> Bytes? {
        do throws(StreamError) {
            let bytes = try await inner.read(upTo: limit)
            socket.arrived()
            return bytes
        } catch {
            throw noted(error)
        }
    }

    func write(_ bytes: Bytes) async throws(StreamError) {
        socket.asks()
        do throws(StreamError) { try await inner.write(bytes) } catch { throw noted(error) }
    }

    func finish() async throws(StreamError) {
        socket.asks()
        do throws(StreamError) { try await inner.finish() } catch { throw noted(error) }
    }

    func reset(_ code: UInt64) async {
        await inner.reset(code)
    }

    private func noted(_ error: StreamError) -> StreamError {
        if let close = error.close { _ = socket.noted(close) }
        return error
    }
}
