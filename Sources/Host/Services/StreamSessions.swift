internal import Synchronization
internal import TransportKit

/// The sessions of a service whose work is streams: accepts them, serves each in a task of its own, and on the way out
/// lets those under way finish.
final class StreamSessions: Sendable {
    private struct State {
        var isStopping = false
        var inboxes: [ObjectIdentifier: Inbox<any Stream>] = [:]
    }

    private let state = Mutex(State())
    private static let stopping = Close(.goingAway, reason: "the host is stopping", origin: .local)

    /// Ends every session once its streams are done, and sessions that begin from now on at once.
    func beginGracefulShutdown() {
        let inboxes = state.withLock { state in
            state.isStopping = true
            return Array(state.inboxes.values)
        }
        for inbox in inboxes { inbox.end(Self.stopping) }
    }

    /// Serves one socket until it ends, the task is cancelled, or the service stops.
    ///
    /// - Parameters:
    ///   - messages: deals with messages; returns when the socket has ended.
    ///   - stream: deals with one stream of the peer's; must end it.
    func serve(
        _ socket: any Socket, messages: @escaping @Sendable () async -> Void,
        stream: @escaping @Sendable (any Stream) async -> Void
    ) async {
        let inbox = Inbox<any Stream>()
        let key = ObjectIdentifier(inbox)
        let isStopping = state.withLock { state in
            state.inboxes[key] = inbox
            return state.isStopping
        }
        defer { state.withLock { $0.inboxes[key] = nil } }
        if isStopping { inbox.end(Self.stopping) }

        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await messages()
                inbox.end(.cancelled)
            }
            if socket.info.capabilities.contains(.streams) {
                group.addTask { await Self.accept(from: socket, into: inbox) }
            }
            await withDiscardingTaskGroup { transfers in
                while let next = try? await inbox.takeFirst() {
                    transfers.addTask { await stream(next) }
                }
            }
            if inbox.end == Self.stopping || Task.isCancelled {
                await socket.close(Self.stopping.code, reason: Self.stopping.reason)
            }
            group.cancelAll()
        }
    }

    private static func accept(from socket: any Socket, into inbox: Inbox<any Stream>) async {
        while true {
            do {
                let stream = try await socket.acceptStream()
                if !inbox.put(stream) { await stream.reset(stopping.code.rawValue) }
            } catch {
                inbox.end(error)
                return
            }
        }
    }
}
