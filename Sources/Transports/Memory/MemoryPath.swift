internal import Synchronization
internal import TransportKit

/// The two ends of a path.
enum PathEnd: Int, Sendable {
    case dialer = 0
    case listener = 1

    var other: PathEnd {
        switch self {
        case .dialer: .listener
        case .listener: .dialer
        }
    }
}

/// What a call on a path answers: a result, or when to ask again at the latest.
enum Step<Answer: Sendable>: Sendable {
    case done(Answer)
    case wait(until: Instant)

    /// Asks again when something changes, and not before.
    static var waitForChange: Step { .wait(until: .never) }
}

extension Instant {
    static let never = Instant(nanoseconds: .max)
}

/// What two memory sockets share: the state of both ends under one lock, and the waiting.
final class MemoryPath: Sendable {
    private let state: Mutex<PathState>
    private let network: MemoryNetwork

    init(
        network: MemoryNetwork, transport: TransportName, dialer: (Limits, idleTimeout: Duration),
        listener: (Limits, idleTimeout: Duration)
    ) {
        self.network = network
        state = Mutex(PathState(dialer: dialer, listener: listener))
        network.add(self, of: transport)
        // Registered first, so that no change of the faults falls between the two.
        apply(network.faults(of: transport))
    }

    var hasEnded: Bool { change { state, _ in state.hasEnded } }

    /// Asks `attempt` until it answers; waits for `signal`, or the instant it named, in between.
    ///
    /// - Returns: nil when the waiting task was cancelled.
    func ask<Answer: Sendable>(
        _ signal: Signal, _ attempt: @Sendable (inout PathState, Instant) -> Step<Answer>
    ) async -> Answer? {
        while true {
            switch change(attempt) {
            case .done(let answer): return answer
            case .wait(let deadline):
                let alarm =
                    deadline < .never
                    ? Alarm(signal, at: deadline, time: network.time, executor: network.executor) : nil
                let isWoken = await signal.wait()
                alarm?.cancel()
                if !isWoken { return nil }
            }
        }
    }

    /// Changes the state, after whatever is due has happened, and wakes whoever that concerns.
    @discardableResult
    func change<Answer: Sendable>(_ body: (inout PathState, Instant) -> Answer) -> Answer {
        let (answer, woken) = state.withLock { state in
            let now = network.time.now()
            state.settle(now)
            let answer = body(&state, now)
            return (answer, state.takeWoken())
        }
        for signal in woken { signal.signal() }
        return answer
    }

    // MARK: - For the network and the listener

    func apply(_ faults: MemoryFaults) { change { state, now in state.apply(faults, now) } }
    func cut() { change { state, _ in state.cut() } }
    func vanish() { change { state, now in state.vanish(now) } }
    func migrate() { change { state, _ in state.hasMigrated = true } }

    /// Sends without waiting for room, as a first flight does.
    func push(_ messages: [Message], from end: PathEnd) {
        change { state, now in state.push(messages, from: end, now) }
    }

    /// Closes the listener's end before anybody has it.
    func refuse(_ code: CloseCode, reason: String) {
        change { state, now in
            state.beginClose(Close(code, reason: reason, origin: .local), at: .listener, now)
            state.end(.listener, with: Close(code, reason: reason, origin: .local))
        }
    }
}
