internal import Synchronization
internal import TransportKit

/// One check under way: sets the transport up, bounds every wait, and says what went wrong.
struct CheckRun: Sendable {
    let subject: TransportUnderTest
    let rule: String

    /// Two ends that talk.
    struct Conversation: Sendable {
        let rig: TransportRig
        let listener: any Listener
        let near: any Socket
        let far: any Socket
        let dialOptions: DialOptions
        let listenOptions: ListenOptions

        /// Both ends, each with its peer.
        var directions: [(from: any Socket, to: any Socket)] { [(near, far), (far, near)] }
    }

    // MARK: - Setting up

    /// Runs `body` with a rig and takes the rig down, whatever happens.
    func withRig(_ body: @escaping @Sendable (TransportRig) async throws -> Void) async throws {
        let rig = try await within("making the rig") { [subject] in try await subject.makeRig() }
        let failure = await failure { try await body(rig) }
        try await within("taking the rig down") { await rig.tearDown() }
        if let failure { throw failure }
    }

    /// Runs `body` with a listener and closes it, whatever happens.
    func withListener(
        _ change: @escaping @Sendable (inout ListenOptions) -> Void = { _ in },
        _ body: @escaping @Sendable (TransportRig, any Listener, ListenOptions) async throws -> Void
    ) async throws {
        try await withRig { rig in
            var options = rig.listenOptions
            change(&options)
            let chosen = options
            let listener = try await within("listen") { try await rig.listener.listen(rig.endpoint, options: chosen) }
            let failure = await failure { try await body(rig, listener, chosen) }
            try await within("closing the listener") { await listener.close() }
            if let failure { throw failure }
        }
    }

    /// Runs `body` with two ends that talk and closes them, whatever happens.
    func withConversation(
        dial changeDial: @escaping @Sendable (inout DialOptions) -> Void = { _ in },
        listen changeListen: @escaping @Sendable (inout ListenOptions) -> Void = { _ in },
        _ body: @escaping @Sendable (Conversation) async throws -> Void
    ) async throws {
        try await withListener(changeListen) { rig, listener, listenOptions in
            var options = rig.dialOptions
            changeDial(&options)
            let dialOptions = options
            let near = try await dial(rig, listener, options: dialOptions)
            let far = try await within("accept") { try await listener.accept() }
            let conversation = Conversation(
                rig: rig, listener: listener, near: near, far: far, dialOptions: dialOptions,
                listenOptions: listenOptions)
            let failure = await failure { try await body(conversation) }
            try await within("closing both ends") {
                async let one = near.close()
                async let other = far.close()
                _ = await (one, other)
            }
            if let failure { throw failure }
        }
    }

    /// Dials a listener.
    func dial(
        _ rig: TransportRig, _ listener: any Listener, target: Target = .root, options: DialOptions? = nil
    ) async throws -> any Socket {
        let url = ServiceURL(listener.endpoint, target: target)
        return try await within("dial") { try await rig.dialer.dial(url, options: options ?? rig.dialOptions) }
    }

    // MARK: - Judging

    func broken(_ what: String) -> ConformanceFailure {
        ConformanceFailure(subject: subject.name, rule: rule, what: what)
    }

    func expect(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        guard condition else { throw broken(what()) }
    }

    /// The close that a call must end with.
    @discardableResult
    func close<Value: Sendable>(
        of call: String, _ body: @escaping @Sendable () async throws(Close) -> Value
    ) async throws -> Close {
        let outcome = try await outcome(of: call, body)
        switch outcome {
        case .success: throw broken("\(call) succeeded where it had to fail")
        case .failure(let close): return close
        }
    }

    /// What a call on a socket came to.
    func outcome<Value: Sendable>(
        of call: String, _ body: @escaping @Sendable () async throws(Close) -> Value
    ) async throws -> Result<Value, Close> {
        try await within(call) { () async -> Result<Value, Close> in
            do throws(Close) { return .success(try await body()) } catch { return .failure(error) }
        }
    }

    /// The error that a call on a stream must end with.
    @discardableResult
    func streamError<Value: Sendable>(
        of call: String, _ body: @escaping @Sendable () async throws(StreamError) -> Value
    ) async throws -> StreamError {
        let outcome = try await within(call) { () async -> Result<Value, StreamError> in
            do throws(StreamError) { return .success(try await body()) } catch { return .failure(error) }
        }
        switch outcome {
        case .success: throw broken("\(call) succeeded where it had to fail")
        case .failure(let error): return error
        }
    }

    private func failure(_ body: () async throws -> Void) async -> (any Error)? {
        do {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    // MARK: - Waiting

    /// Runs one step, and throws where it fails or takes longer than the subject's patience.
    ///
    /// The step runs in a task of its own, which is cancelled at the end: a transport that ignores cancellation makes the
    /// check fail, and never hang.
    @discardableResult
    func within<Value: Sendable>(
        _ step: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let outcome = FirstOutcome<Value>()
        let work = Task {
            do {
                outcome.settle(.success(try await body()))
            } catch let failure as ConformanceFailure {
                outcome.settle(.failure(failure))
            } catch {
                outcome.settle(.failure(broken("\(step) failed: \(error)")))
            }
        }
        let patience = subject.patience
        let timer = Task {
            guard (try? await Task.sleep(for: patience)) != nil else { return }
            outcome.settle(.failure(broken("\(step) took longer than \(patience)")))
        }
        defer {
            timer.cancel()
            work.cancel()
        }
        return try await withTaskCancellationHandler {
            try await outcome.value()
        } onCancel: {
            outcome.settle(.failure(CancellationError()))
        }
    }

    /// Waits until `count` has not moved for a while: whoever moves it is waiting.
    func untilStill(_ count: @escaping @Sendable () -> Int) async throws {
        try await within("coming to rest") {
            var last = count()
            var still = 0
            while still < 12 {
                try await Task.sleep(for: .milliseconds(20))
                let now = count()
                still = now == last ? still + 1 : 0
                last = now
            }
        }
    }

    /// Gives a call that was just started in another task the time to begin waiting. Whether it has is not needed for
    /// the check to be right, only for it to reach the waiting.
    func letItWait() async throws {
        try await Task.sleep(for: .milliseconds(15))
    }
}

/// The first of several outcomes; later ones are dropped.
private final class FirstOutcome<Value: Sendable>: Sendable {
    private enum State {
        case pending
        case waiting(CheckedContinuation<Value, any Error>)
        case settled(Result<Value, any Error>)
        case taken
    }

    private let state = Mutex(State.pending)

    func settle(_ result: Result<Value, any Error>) {
        let continuation = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            switch state {
            case .pending:
                state = .settled(result)
                return nil
            case .waiting(let continuation):
                state = .taken
                return continuation
            case .settled, .taken:
                return nil
            }
        }
        continuation?.resume(with: result)
    }

    func value() async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state -> Result<Value, any Error>? in
                guard case .settled(let result) = state else {
                    state = .waiting(continuation)
                    return nil
                }
                state = .taken
                return result
            }
            if let result { continuation.resume(with: result) }
        }
    }
}
