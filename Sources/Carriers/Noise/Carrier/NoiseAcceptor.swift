public import TransportKit

/// The responder of sessions: answers the handshake on sockets that were accepted, one by one.
///
/// A stranger gets silence (R133): nothing tells it whether its key, its payload or its bytes were wrong, and the answer is
/// worked out before that is decided. What it can cost is bounded: no more than a few message 1s are looked at on each socket.
public struct NoiseAcceptor: Sendable {
    /// Decides who is let in, by its key and by what its message 1 brought.
    public typealias Admission = @Sendable (StaticPublicKey, Bytes) async -> Bool

    /// How many messages are tried as message 1 on one socket.
    static let attemptLimit = 16

    private let key: StaticPrivateKey
    private let settings: NoiseSettings
    private let executor: any SerialExecutor & TaskExecutor
    private let time: any TimeSource
    private let metrics: any MetricsSink
    private let admits: Admission

    /// Makes an acceptor.
    ///
    /// - Parameters:
    ///   - key: who this end is.
    ///   - settings: what both ends agree on, and how long this one waits.
    ///   - executor: where its sockets work, best the loop of those below.
    ///   - time: the clock of its patience.
    ///   - metrics: hears how many sessions there are, and how many messages belonged to none.
    ///   - admits: decides who is let in; called once for each message 1 that is one.
    public init(
        key: StaticPrivateKey, settings: NoiseSettings = NoiseSettings(),
        executor: any SerialExecutor & TaskExecutor, time: any TimeSource, metrics: any MetricsSink = NoMetrics(),
        admits: @escaping Admission
    ) {
        self.key = key
        self.settings = settings
        self.executor = executor
        self.time = time
        self.metrics = metrics
        self.admits = admits
    }

    /// Waits for a message 1 that is admitted, answers it, and returns the sealed socket, which owns `socket` from then on.
    ///
    /// Whoever recorded a message 1 can send it again and gets an answer that is of no use to it: only the first message that
    /// the sealed socket receives proves that the peer is there. Nothing of consequence should happen before it.
    ///
    /// - Throws: the end of `socket`; 4408, with which it closes it, where patience is over. A cancelled call throws
    ///   ``/TransportKit/Close/cancelled`` and leaves `socket` to the caller.
    public func accept(_ socket: any Socket) async throws(Close) -> NoiseSocket {
        let deadline = time.now() + settings.patience
        var attempts = 0
        while time.now() < deadline {
            let arrival = await Arrival.next(
                on: socket, until: deadline, or: Signal(), time: time, executor: executor)
            switch arrival {
            case .messages(let batch):
                for (index, message) in batch.enumerated() {
                    if attempts < Self.attemptLimit, let answer = answer(to: message.payload, &attempts),
                        await admits(answer.peer, answer.payload)
                    {
                        try await socket.send(Message(answer.message2))
                        return NoiseSocket(
                            answer.begin(), over: socket, arrived: Array(batch[(index + 1)...]), settings: settings,
                            executor: executor, metrics: metrics)
                    }
                    metrics.add(1, to: "noise.messages.dropped")
                }
            case .ended(let close):
                throw close
            case .nothing:
                break
            }
        }
        let reason = "no handshake was done within \(settings.patience.inWords)"
        throw await socket.close(.tooSlow, reason: reason)
    }

    private func answer(to message: Bytes, _ attempts: inout Int) -> NoiseAnswer? {
        guard message.count >= HandshakeMessage.firstLength else { return nil }
        attempts += 1
        return try? ResponderHandshake(key: key, prologue: settings.prologue, reading: message).answer()
    }
}
