internal import TransportIO
internal import TransportKit

/// A connection that was accepted, until it is a WebSocket or has been answered otherwise. Confined to its loop.
final class ServerHandshake {
    /// What the listener is told, at most once of each.
    struct Outcome {
        let request: UpgradeRequest
        let subprotocol: String?
        /// What came glued to the head.
        let rest: Bytes
    }

    /// What the listener decides by.
    struct Rules {
        var route: (Target) -> RouteAnswer
        /// The sub-protocol that is spoken here.
        var subprotocol: String?
        var timeout: Duration
        var log: Log
    }

    private enum State {
        case securing
        case reading
        /// Answered with something other than 101; the rest of the input is dropped until the peer ends.
        case answered
        case over
    }

    private let pipe: Pipe
    private let rules: Rules
    private var reader = HTTPHeadReader()
    private var state: State
    private var timer: LoopTimer?
    /// Called with the pipe when it is a WebSocket, or with nil when it is gone.
    private var done: ((Outcome?) -> Void)?

    /// Begins; `done` is called once, on the loop.
    init(_ pipe: Pipe, isSecured: Bool, rules: Rules, done: @escaping (Outcome?) -> Void) {
        self.pipe = pipe
        self.rules = rules
        self.done = done
        state = isSecured ? .securing : .reading
        pipe.owner = self
        timer = pipe.loop.makeTimer { [weak self] in self?.timeout() }
        timer?.arm(at: pipe.loop.now() + rules.timeout)
    }

    /// Drops the connection.
    func abandon() {
        end(nil)
    }

    /// Answers that there is no room, before a byte has been read.
    func refuseForLackOfRoom() {
        answer(.refusal(.tryAgainLater), isHead: false)
    }

    private func timeout() {
        rules.log.debug("dropped a connection from \(peer) that took longer than its handshake may")
        end(nil)
    }

    private var peer: String { pipe.remoteAddress.map { "\($0)" } ?? "a peer that is gone" }

    private func end(_ outcome: Outcome?) {
        guard state != .over else { return }
        state = .over
        timer?.disarm()
        if outcome == nil { pipe.close() }
        let done = done.take()
        done?(outcome)
    }

    private func read(_ head: HTTPHead, rest: Bytes) {
        switch UpgradeRequest.judge(head) {
        case .refused(let refusal): answer(refusal, isHead: false)
        case .plain(let target, let isHead):
            let plain = HTTPAnswer.plain(target) { target in
                switch rules.route(target) {
                case .accept: true
                case .refuse(let code): code != .nobodyThere && code != .badTarget
                }
            }
            answer(plain, isHead: isHead)
        case .upgrade(let request):
            switch rules.route(request.target) {
            case .refuse(let code): answer(.refusal(code), isHead: false)
            case .accept: accept(request, rest: rest)
            }
        }
    }

    private func accept(_ request: UpgradeRequest, rest: Bytes) {
        let subprotocol = rules.subprotocol.flatMap { request.subprotocols.contains($0) ? $0 : nil }
        let answer = HTTPAnswer.switching(to: request, subprotocol: subprotocol).encoded()
        pipe.write { $0.append(contentsOf: answer) }
        end(Outcome(request: request, subprotocol: subprotocol, rest: rest))
    }

    private func answer(_ answer: HTTPAnswer, isHead: Bool) {
        rules.log.debug("answered \(peer) with \(answer.status): \(answer.text)")
        state = .answered
        let bytes = answer.encoded(isHead: isHead)
        pipe.write { $0.append(contentsOf: bytes) }
        pipe.finish()
    }
}

extension ServerHandshake: PipeOwner {
    func pipeConnected() {}

    func pipeSecured() {
        guard state == .securing else { return }
        state = .reading
    }

    func pipeReceived(_ bytes: UnsafeRawBufferPointer) {
        guard state == .reading else { return }
        do throws(HTTPHead.Malformed) {
            if let (head, rest) = unsafe try reader.take(bytes) { read(head, rest: rest) }
        } catch {
            answer(HTTPAnswer(400, "the request \(error.what)"), isHead: false)
        }
    }

    func pipeFlushed() {}

    func pipeEnded() {
        // A peer that has ended its direction may still want the answer, which is then on its way.
        if state != .answered || pipe.buffered == 0 { end(nil) }
    }

    func pipeFailed(_ error: TransportError, while activity: Pipe.Activity) {
        switch activity {
        case .connecting, .reading, .writing: break
        case .securing: rules.log.debug("a handshake with \(peer) failed: \(error)")
        }
        end(nil)
    }
}
