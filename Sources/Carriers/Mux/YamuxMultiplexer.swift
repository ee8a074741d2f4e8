public import TransportKit

/// Gives streams to message-only sockets by yamux, as `docs/protocol.md` §5 says.
public struct YamuxMultiplexer: StreamMultiplexer {
    private let executor: any SerialExecutor & TaskExecutor
    private let time: any TimeSource

    /// Makes a multiplexer whose sockets do their work on `executor`, best the loop of the sockets it wraps.
    public init(executor: any SerialExecutor & TaskExecutor, time: any TimeSource) {
        self.executor = executor
        self.time = time
    }

    /// `tk-mux.1`
    public var subprotocol: String { WireNames.muxSubprotocol }

    /// Wraps a socket on which nothing has been sent or received yet.
    public func wrap(_ socket: any Socket, isDialer: Bool, limits: Limits) async -> any Socket {
        await wrap(socket, session: Self.makeSession(isDialer: isDialer, limits: limits), limits: limits)
    }

    func wrap(_ socket: any Socket, session: YamuxSession, limits: Limits) async -> any Socket {
        let core = MuxCore(inner: socket, session: session, limits: limits, executor: executor, time: time)
        await core.start()
        return MuxSocket(core: core)
    }

    static func makeSession(isDialer: Bool, limits: Limits) -> YamuxSession {
        YamuxSession(
            YamuxSession.Settings(
                isDialer: isDialer, streamWindow: limits.streamWindowBytes, laneWindow: limits.receiveBufferBytes,
                maxStreams: limits.maxStreams))
    }
}
