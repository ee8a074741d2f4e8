internal import Synchronization
public import TransportKit

/// Gives streams to a carrier that has only messages.
///
/// The other end wraps the sockets it accepts with ``YamuxMultiplexer``. Sessions need nothing from the carrier below
/// but reliable messages; one that has datagrams keeps them.
public final class MuxCarrier: Carrier {
    private struct WeakSocket {
        weak var socket: MuxSocket?
    }

    private let inner: any Carrier
    private let limits: Limits
    private let multiplexer: YamuxMultiplexer
    private let sessions = Mutex<[WeakSocket]>([])

    /// Makes a carrier over another.
    ///
    /// - Parameters:
    ///   - inner: what carries the messages.
    ///   - limits: the bounds of its sockets and streams.
    ///   - executor: where its sockets work.
    ///   - time: what bounds the wait of a close.
    public init(
        over inner: any Carrier, limits: Limits = Limits(), executor: any SerialExecutor & TaskExecutor,
        time: any TimeSource
    ) {
        self.inner = inner
        self.limits = limits
        multiplexer = YamuxMultiplexer(executor: executor, time: time)
    }

    /// Those of the carrier below, with streams and without text.
    public var capabilities: Capabilities { inner.capabilities.union(.streams).subtracting(.text) }

    /// That of the carrier below.
    public var protection: Protection { inner.protection }

    /// Those of the carrier below.
    public var states: CarrierStates { inner.states }

    /// Opens a session of the carrier below and wraps it. The first flight travels inside that of the session below.
    public func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        var session = YamuxMultiplexer.makeSession(isDialer: true, limits: limits)
        if let firstFlight {
            guard firstFlight.count <= limits.maxMessageBytes else {
                throw Close(.tooBig, reason: "the first flight is above the limit on messages", origin: .local)
            }
            var batch = LaneBatch()
            batch.append(firstFlight)
            for piece in batch.finish() { session.write(piece, to: YamuxSession.Lane.control) }
        }
        // Early flights are small; what does not fit follows.
        let opening = session.takeOutput(upTo: YamuxSession.frameLimit)
        let socket = await multiplexer.wrap(
            try await inner.open(firstFlight: opening), session: session, limits: limits)
        if let socket = socket as? MuxSocket {
            sessions.withLock { sessions in
                sessions.removeAll { $0.socket == nil }
                sessions.append(WeakSocket(socket: socket))
            }
        }
        return socket
    }

    /// Wakes the carrier below.
    public func wake() async {
        await inner.wake()
    }

    /// Closes its sessions, after what they have accepted, and the carrier below.
    public func close(_ code: CloseCode, reason: String) async {
        let open = sessions.withLock { $0.compactMap(\.socket) }
        await withDiscardingTaskGroup { group in
            for socket in open { group.addTask { _ = await socket.close(code, reason: reason) } }
        }
        await inner.close(code, reason: reason)
    }
}
