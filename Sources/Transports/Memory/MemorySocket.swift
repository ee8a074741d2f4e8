internal import TransportKit

/// One end of a path.
final class MemorySocket: Socket {
    let info: SocketInfo
    private let path: MemoryPath
    private let end: PathEnd

    init(path: MemoryPath, end: PathEnd, info: SocketInfo) {
        self.path = path
        self.end = end
        self.info = info
    }

    deinit {
        path.change { [end] state, now in
            guard state[end].verdict == nil else { return }
            let close = Close(.goingAway, reason: "nobody holds the socket any more", origin: .local)
            if state[end].closing == nil { state.beginClose(close, at: end, now) }
            state.end(end, with: state[end].closing ?? close)
        }
    }

    func send(_ messages: [Message]) async throws(Close) {
        let signal = Signal()
        let carried = messages.map { message in
            // Without datagrams an unreliable message travels as a control message (R9).
            guard message.delivery == .unreliable, !info.capabilities.contains(.datagrams) else { return message }
            return Message(message.payload, delivery: .control, format: message.format)
        }
        let answer = await path.ask(signal) { [end, info] state, now -> Step<Close?> in
            if let close = state[end].verdict ?? state[end].closing { return .done(close) }
            if let refusal = state.refusal(of: carried, capabilities: info.capabilities, from: end) {
                return .done(refusal)
            }
            guard state.hasRoom(from: end) else {
                state.addWaiting(signal, at: end)
                return .wait(until: state.nextChange(at: end))
            }
            state.push(carried, from: end, now)
            return .done(nil)
        }
        guard let answer else {
            path.change { [end] state, _ in state.removeWaiting(signal, at: end) }
            throw .cancelled
        }
        if let close = answer { throw close }
    }

    func receive() async throws(Close) -> [Message] {
        let signal = try path.change { [end] state, _ -> Signal? in
            guard !state[end].isReceiving else { return nil }
            state[end].isReceiving = true
            return state[end].receiver
        }.orMisuse("another task receives already")
        defer { path.change { [end] state, _ in state[end].isReceiving = false } }
        let answer = await path.ask(signal) { [end] state, _ -> Step<Result<[Message], Close>> in
            if !state[end].messages.isEmpty { return .done(.success(state.takeMessages(at: end))) }
            if let close = state[end].verdict ?? state[end].closing { return .done(.failure(close)) }
            return .wait(until: state.nextChange(at: end))
        }
        guard let answer else { throw .cancelled }
        return try answer.get()
    }

    func openStream() async throws(Close) -> any Stream {
        guard info.capabilities.contains(.streams) else { throw .misuse("this wire has no streams") }
        let signal = Signal()
        let answer = await path.ask(signal) { [end] state, now -> Step<Result<UInt64, Close>> in
            if let close = state[end].verdict ?? state[end].closing { return .done(.failure(close)) }
            guard state[end].openedStreams < state[end.other].limits.maxStreams else {
                state.addWaiting(signal, at: end)
                return .wait(until: state.nextChange(at: end))
            }
            return .done(.success(state.openStream(from: end, now)))
        }
        guard let answer else {
            path.change { [end] state, _ in state.removeWaiting(signal, at: end) }
            throw .cancelled
        }
        return MemoryStream(id: try answer.get(), path: path, end: end)
    }

    func acceptStream() async throws(Close) -> any Stream {
        guard info.capabilities.contains(.streams) else { throw .misuse("this wire has no streams") }
        let signal = try path.change { [end] state, _ -> Signal? in
            guard !state[end].isAccepting else { return nil }
            state[end].isAccepting = true
            return state[end].acceptor
        }.orMisuse("another task accepts streams already")
        defer { path.change { [end] state, _ in state[end].isAccepting = false } }
        let answer = await path.ask(signal) { [end] state, _ -> Step<Result<UInt64, Close>> in
            if !state[end].streams.isEmpty { return .done(.success(state[end].streams.removeFirst())) }
            if let close = state[end].verdict ?? state[end].closing { return .done(.failure(close)) }
            return .wait(until: state.nextChange(at: end))
        }
        guard let answer else { throw .cancelled }
        return MemoryStream(id: try answer.get(), path: path, end: end)
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        let signal = Signal()
        let mine = Close(code, reason: reason, origin: .local)
        let limit = path.change { [end] state, now -> Instant in
            if state[end].verdict == nil, state[end].closing == nil { state.beginClose(mine, at: end, now) }
            return now + state[end].limits.linger
        }
        let answer = await path.ask(signal) { [end] state, now -> Step<Close> in
            if let verdict = state[end].verdict { return .done(verdict) }
            // Everything has arrived once the close that follows it has.
            guard let due = state[end.other].arriving.last?.due, now < limit else {
                state.end(end, with: state[end].closing ?? mine)
                return .done(state[end].verdict ?? mine)
            }
            state.addWaiting(signal, at: end)
            return .wait(until: min(due, limit, state.nextChange(at: end)))
        }
        if let answer { return answer }
        // The caller will not wait for the peer any longer.
        return path.change { [end] state, _ in
            state.removeWaiting(signal, at: end)
            state.end(end, with: state[end].closing ?? mine)
            return state[end].verdict ?? mine
        }
    }
}

extension PathState {
    mutating func addWaiting(_ signal: Signal, at end: PathEnd) {
        if !self[end].waiting.contains(where: { $0 === signal }) { self[end].waiting.append(signal) }
    }

    mutating func removeWaiting(_ signal: Signal, at end: PathEnd) {
        self[end].waiting.removeAll { $0 === signal }
    }
}

extension Optional {
    fileprivate func orMisuse(_ what: String) throws(Close) -> Wrapped {
        guard let self else { throw .misuse(what) }
        return self
    }
}

extension MemorySocket: PathAwareSocket {
    var localAddress: SocketAddress? { info.localAddress }

    var hasMigrated: Bool { path.change { state, _ in state.hasMigrated } }

    func checkPath(within limit: Duration) async -> Bool {
        let signal = Signal()
        let begun = path.change { _, now in now }
        let isAnswered = await path.ask(signal) { [end] state, now -> Step<Bool> in
            if state[end].verdict != nil || state[end].closing != nil { return .done(false) }
            let answer = state.answer(toWhatWasAskedAt: begun)
            if now >= answer { return .done(true) }
            if now >= begun + limit { return .done(false) }
            state.addWaiting(signal, at: end)
            return .wait(until: min(answer, begun + limit, state.nextChange(at: end)))
        }
        path.change { [end] state, _ in state.removeWaiting(signal, at: end) }
        return isAnswered ?? false
    }
}
