internal import TransportIO
internal import TransportKit

/// Where a forward gets the session that its streams are opened on.
protocol SessionSource: Sendable {
    /// The open session, or nil while there is none.
    var current: (any Socket)? { get }

    /// The open session; waits until there is one.
    func socket() async throws(Close) -> any Socket
}

/// A local port whose connections come out at the other end of a carrier.
///
/// The port is bound from the start and stays bound while the carrier is down: a connection then waits for a while and is
/// reset, never answered with an end (B25). Nothing tells the local client whether the other end was reached before its
/// bytes flow; accepting first is how a port works.
final class ListeningForward: Sendable {
    /// What it is, for logs.
    let name: String
    /// The address it listens at.
    var localAddress: SocketAddress { listener.localAddress }

    private let listener: TCPListener
    private let to: ForwardTarget
    private let request: Bytes
    private let patience: Duration
    private let sessions: any SessionSource
    private let time: any TimeSource
    private let log: Log
    private let limiter: LogLimiter
    private let activity: Activity
    /// What has become of its connections.
    let tally = Tally()

    /// How long the other end may take to give room for a stream and to answer whether it has connected.
    private let opening: Timeouts

    private static let openingTimeout = Duration.seconds(30)
    /// How many connections may wait for the other end at once.
    private static let openingLimit = 4096

    /// Makes a forward over a listener that is bound.
    init(
        name: String, listener: TCPListener, to: ForwardTarget, patience: Duration, sessions: any SessionSource,
        activity: Activity, time: any TimeSource, log: Log
    ) {
        self.name = name
        self.listener = listener
        self.to = to
        request = ForwardHeader.request(to)
        self.patience = patience
        self.sessions = sessions
        self.activity = activity
        self.time = time
        self.log = log
        limiter = LogLimiter(time: time)
        opening = Timeouts(limit: Self.openingTimeout, time: time)
    }

    /// Forwards until ``stopAccepting()`` and the last connection's end; cancelling the task resets what is open.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [opening] in await opening.run() }
            await withDiscardingTaskGroup { connections in
                while let connection = try? await listener.accept() {
                    connections.addTask { [self] in
                        tally.began()
                        await activity.during { await forward(connection) }
                        tally.ended()
                    }
                }
            }
            group.cancelAll()
        }
    }

    /// Frees the port; connections that are open go on.
    func stopAccepting() async {
        await listener.close()
    }

    private func forward(_ connection: TCPConnection) async {
        let stream: any Stream
        do {
            stream = try await openStream(for: connection)
            try await stream.write(request)
        } catch {
            await connection.reset()
            // Whatever it waited for, it was not that which was missing.
            guard !Task.isCancelled else { return complain("the host stops") }
            complain(error is Timeouts.Passed ? "the other end gave no room for a stream" : "\(error)")
            return
        }
        let ending = await Relay.run(connection, stream) { [opening] in
            try await opening.run {
                try await Self.readAnswer(stream)
            } fire: {
                await stream.reset(0)
            }
        }
        switch ending {
        case .clean: break
        case .broken(let refusal as ForwardHeader.Refusal):
            complain("\(to) was refused by the other end: \("\(refusal)".printable())")
        case .broken(is Timeouts.Passed):
            complain("\(to): the other end did not say whether it connected")
        case .broken(let error):
            log.debug("\(name): reset, \(error)")
        }
    }

    /// Opens a stream on the session there is, or on the next one: a session may end at this very moment.
    private func openStream(for connection: TCPConnection) async throws -> any Stream {
        guard opening.count < Self.openingLimit else {
            throw TransportError(.resources, "\(Self.openingLimit) connections wait for the other end already")
        }
        if let socket = sessions.current {
            do {
                // A call that waits for room cannot be ended from outside; its client has gone by the time it returns.
                return try await opening.run { () async throws in
                    try await socket.openStream()
                } fire: {
                    await connection.reset()
                }
            } catch is Close {
                // The session has just ended.
            }
        }
        do {
            return try await Deadline.run(patience, time: time) { [sessions, time] in
                while true {
                    let socket = try await sessions.socket()
                    do throws(Close) {
                        return try await socket.openStream()
                    } catch {
                        guard error.origin != .cancellation, error.cause?.code != .misuse else { throw error }
                        // The end of this session may not have come round to its owner yet.
                        try await time.sleep(for: .milliseconds(10))
                    }
                }
            }
        } catch is Deadline.Passed {
            throw TransportError(.timedOut, "the carrier had no open session for \(patience.inWords)")
        }
    }

    private static func readAnswer(_ stream: any Stream) async throws -> Bytes {
        var reader = ForwardHeader.AnswerReader()
        while true {
            switch try reader.next() {
            case .open: return reader.rest
            case .refused(let refusal): throw refusal
            case nil: break
            }
            guard let bytes = try await stream.read(upTo: Relay.chunk) else {
                throw ForwardHeader.Malformed(description: "the stream ended before the answer")
            }
            reader.feed(bytes)
        }
    }

    private func complain(_ what: String) {
        tally.failed()
        limiter.run { (more: String) in
            log.warning("\(name): a connection was reset: \(what)\(more)")
        }
    }
}
