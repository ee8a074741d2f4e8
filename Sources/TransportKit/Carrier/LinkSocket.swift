internal import Synchronization

/// A session of a link: every call goes straight through, and one that finds the session ended tells the link.
final class LinkSocket: Socket {
    private let inner: any Socket
    private let seen = Mutex<Close?>(nil)
    /// Given when the session has ended.
    let end = Signal()

    init(_ inner: any Socket) {
        self.inner = inner
    }

    /// How it ended, once it has.
    var close: Close? { seen.withLock { $0 } }

    var hasEnded: Bool { close != nil }

    var info: SocketInfo { inner.info }

    func send(_ messages: [Message]) async throws(Close) {
        do throws(Close) { try await inner.send(messages) } catch { throw noted(error) }
    }

    func receive() async throws(Close) -> [Message] {
        do throws(Close) { return try await inner.receive() } catch { throw noted(error) }
    }

    func openStream() async throws(Close) -> any Stream {
        do throws(Close) { return try await inner.openStream() } catch { throw noted(error) }
    }

    func acceptStream() async throws(Close) -> any Stream {
        do throws(Close) { return try await inner.acceptStream() } catch { throw noted(error) }
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        let close = await inner.close(code, reason: reason)
        note(close)
        return close
    }

    private func noted(_ close: Close) -> Close {
        switch close.origin {
        case .remote, .path:
            note(close)
        case .local:
            // A refused call has a cause, or says that a message was too long; neither ends the session.
            if close.cause == nil, close.code != .tooBig { note(close) }
        case .cancellation:
            break
        }
        return close
    }

    private func note(_ close: Close) {
        let isFirst = seen.withLock { seen in
            defer { seen = seen ?? close }
            return seen == nil
        }
        if isFirst { end.signal() }
    }
}
