internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// A dial to one address, step by step, until the WebSocket is open. Each step is waited for by one task.
///
/// Sendable is sound: it is confined to its loop, on which the actor that dials and the pipe both run.
final class ClientHandshake: @unchecked Sendable {
    /// What the upgrade came to.
    struct Outcome {
        let subprotocol: String?
        /// What came glued to the head.
        let rest: Bytes
    }

    private enum State {
        case connecting
        case connected
        case securing
        case secured
        case upgrading(UpgradeClient)
        case open(Outcome)
        case failed(TransportError)
    }

    /// How long the text of a refusal is waited for.
    private static let refusalGrace = Duration.seconds(1)

    let pipe: Pipe
    private let address: SocketAddress
    private let changed = Signal()
    private var state = State.connecting
    private var timer: LoopTimer?

    /// Starts to connect. On the loop only.
    init(_ address: SocketAddress, loop: EventLoop, room: LoopRoom) throws(TransportError) {
        self.address = address
        pipe = try Pipe(connectingTo: address, loop: loop, room: room)
        pipe.owner = self
    }

    /// Drops the connection.
    func abandon() {
        timer?.disarm()
        pipe.close()
    }

    /// Waits until TCP is connected.
    func connect() async throws(TransportError) {
        try await step { state in
            switch state {
            case .connected, .securing, .secured, .upgrading, .open: true
            case .connecting, .failed: false
            }
        }
    }

    /// Puts TLS on the connection and waits until both ends agree.
    func secure(_ session: TLSSession) async throws(TransportError) {
        state = .securing
        pipe.startTLS(session)
        try await step { state in
            switch state {
            case .secured, .upgrading, .open: true
            case .connecting, .connected, .securing, .failed: false
            }
        }
    }

    /// Asks for the WebSocket and waits for the answer.
    func upgrade(_ upgrade: UpgradeClient) async throws(TransportError) -> Outcome {
        state = .upgrading(upgrade)
        pipe.write { $0.append(contentsOf: upgrade.request) }
        try await step { state in
            switch state {
            case .open: true
            case .connecting, .connected, .securing, .secured, .upgrading, .failed: false
            }
        }
        guard case .open(let outcome) = state else { preconditionFailure("a step ended in another state") }
        return outcome
    }

    private func step(until isDone: (State) -> Bool) async throws(TransportError) {
        while true {
            if case .failed(let error) = state { throw error }
            if isDone(state) { return }
            guard await changed.wait() else {
                abandon()
                throw TransportError(.cancelled, "the dial to \(address) was cancelled")
            }
        }
    }

    private func move(to state: State) {
        if case .failed = self.state { return }
        self.state = state
        if case .failed = state { abandon() }
        changed.signal()
    }

    private func waitForRefusal() {
        guard timer == nil else { return }
        timer = pipe.loop.makeTimer { [weak self] in
            guard let self, case .upgrading(let upgrade) = state else { return }
            move(to: .failed(upgrade.ended()))
        }
        timer?.arm(at: pipe.loop.now() + Self.refusalGrace)
    }
}

extension ClientHandshake: PipeOwner {
    func pipeConnected() {
        move(to: .connected)
    }

    func pipeSecured() {
        move(to: .secured)
    }

    func pipeReceived(_ bytes: UnsafeRawBufferPointer) {
        switch state {
        case .upgrading(var upgrade):
            do throws(TransportError) {
                switch unsafe try upgrade.take(bytes) {
                case .incomplete:
                    state = .upgrading(upgrade)
                    if upgrade.isRefused { waitForRefusal() }
                case .open(let subprotocol, let rest):
                    // The session reads on; until it has the pipe, the kernel keeps what comes.
                    pipe.pause()
                    move(to: .open(Outcome(subprotocol: subprotocol, rest: rest)))
                }
            } catch {
                move(to: .failed(error))
            }
        case .open(let outcome):
            // TLS had more in hand than the pause could stop.
            var rest = outcome.rest
            unsafe rest.append(contentsOf: bytes)
            state = .open(Outcome(subprotocol: outcome.subprotocol, rest: rest))
        case .connecting, .connected, .securing, .secured:
            move(to: .failed(TransportError(.protocolViolation, "\(address) spoke before it was asked anything")))
        case .failed: break
        }
    }

    func pipeFlushed() {}

    func pipeEnded() {
        switch state {
        case .upgrading(let upgrade): move(to: .failed(upgrade.ended()))
        case .connecting, .connected, .securing, .secured, .open, .failed:
            move(to: .failed(TransportError(.pathReset, "\(address) ended the connection before it was open")))
        }
    }

    func pipeFailed(_ error: TransportError, while activity: Pipe.Activity) {
        switch (state, activity) {
        case (.upgrading(let upgrade), .reading) where upgrade.isRefused: move(to: .failed(upgrade.ended()))
        // What the service said may still be on its way in.
        case (.upgrading, .writing): break
        case (.upgrading, _), (.connecting, _), (.connected, _), (.securing, _), (.secured, _), (.open, _),
            (.failed, _):
            move(to: .failed(error))
        }
    }
}
