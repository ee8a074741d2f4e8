internal import TransportKit

/// The winner's socket, watched. Every call goes straight through.
final class DirectSocket: Socket {
    private let inner: any Socket
    let watch: SessionWatch

    init(_ inner: any Socket, watch: SessionWatch) {
        self.inner = inner
        self.watch = watch
    }

    deinit {
        watch.ended(Close(.goingAway, reason: "nobody holds the socket any more", origin: .local))
    }

    var info: SocketInfo { inner.info }

    func send(_ messages: [Message]) async throws(Close) {
        do throws(Close) {
            try await inner.send(messages)
        } catch {
            throw watched(error)
        }
    }

    func receive() async throws(Close) -> [Message] {
        do throws(Close) {
            let messages = try await inner.receive()
            if !watch.isProven { watch.arrived() }
            return messages
        } catch {
            throw watched(error)
        }
    }

    func openStream() async throws(Close) -> any Stream {
        do throws(Close) {
            let stream = try await inner.openStream()
            return watch.isProven ? stream : DirectStream(stream, socket: self)
        } catch {
            throw watched(error)
        }
    }

    func acceptStream() async throws(Close) -> any Stream {
        do throws(Close) {
            let stream = try await inner.acceptStream()
            if !watch.isProven { watch.arrived() }
            return stream
        } catch {
            throw watched(error)
        }
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        let close = await inner.close(code, reason: reason)
        watch.ended(close)
        return close
    }

    private func watched(_ close: Close) -> Close {
        watch.saw(close)
        return close
    }
}

extension DirectSocket: PathAwareSocket {
    private var pathAware: (any PathAwareSocket)? { inner as? any PathAwareSocket }

    var hasMigrated: Bool { pathAware?.hasMigrated ?? false }

    var localAddress: SocketAddress? { pathAware?.localAddress ?? info.localAddress }

    func checkPath(within limit: Duration) async -> Bool {
        await pathAware?.checkPath(within: limit) ?? false
    }
}

/// A stream that was opened before anything had arrived: what it reads proves that the path carries.
private final class DirectStream: Stream {
    private let inner: any Stream
    private let watch: SessionWatch

    init(_ inner: any Stream, socket: DirectSocket) {
        self.inner = inner
        watch = socket.watch
    }

    var id: UInt64 { inner.id }

    func read(upTo limit: Int) async throws(StreamError) -> Bytes? {
        do throws(StreamError) {
            let bytes = try await inner.read(upTo: limit)
            if !watch.isProven { watch.arrived() }
            return bytes
        } catch {
            throw watched(error)
        }
    }

    func write(_ bytes: Bytes) async throws(StreamError) {
        do throws(StreamError) {
            try await inner.write(bytes)
        } catch {
            throw watched(error)
        }
    }

    func finish() async throws(StreamError) {
        try await inner.finish()
    }

    func reset(_ code: UInt64) async {
        await inner.reset(code)
    }

    private func watched(_ error: StreamError) -> StreamError {
        if let close = error.close { watch.saw(close) }
        return error
    }
}
