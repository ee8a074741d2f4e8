import Synchronization
import TransportKit

final class MutantSocket: Socket {
    private struct State {
        var held: [Message] = []
        var queue: [Message] = []
        var isPumping = false
        var opened = 0
    }

    private static let leaked = Mutex<[any Socket]>([])

    private let inner: any Socket
    private let mutation: Mutation
    private let isDialer: Bool
    private let state = Mutex(State())
    private let shared = MutantStream.Shared()

    init(_ inner: any Socket, _ mutation: Mutation, isDialer: Bool) {
        self.inner = inner
        self.mutation = mutation
        self.isDialer = isDialer
        if mutation == .leaksSockets { Self.leaked.withLock { $0.append(inner) } }
    }

    var info: SocketInfo {
        var info = inner.info
        if mutation == .losesTarget { info.target = .root }
        return info
    }

    func send(_ messages: [Message]) async throws(Close) {
        switch mutation {
        case .reversesBatches: try await inner.send(messages.reversed())
        case .letsMessagesOvertake:
            let ready = state.withLock { state -> [Message] in
                if let message = messages.first, message.payload.count == 40, message.payload[7] % 8 == 2 {
                    state.held.append(message)
                    return []
                }
                defer { state.held = [] }
                return messages + state.held
            }
            try await inner.send(ready)
        case .tearsBatches:
            for message in messages {
                try await inner.send(message)
                await Task.yield()
            }
        case .sendsTextAsBinary: try await inner.send(messages.map { Message($0.payload, delivery: $0.delivery) })
        case .losesUnreliable: try await inner.send(messages.filter { $0.delivery != .unreliable })
        case .buffersMessagesWithoutBound: pump(messages)
        case .endsOnOverlongSend:
            if messages.contains(where: { $0.payload.count > info.maxMessageBytes }) {
                await inner.close(.tooBig, reason: "")
            }
            try await inner.send(messages)
        case .neverCancelsSend:
            try await unreachable { [inner] () async throws(Close) in try await inner.send(messages) }
        case .losesLastMessage:
            let ready = state.withLock { state -> [Message] in
                let all = state.held + messages
                state.held = Array(all.suffix(1))
                return Array(all.dropLast())
            }
            try await inner.send(ready)
        case .takesMessagesAfterClose: try? await inner.send(messages)
        default: try await inner.send(messages)
        }
    }

    private func pump(_ messages: [Message]) {
        let starts = state.withLock { state in
            state.queue += messages
            defer { state.isPumping = true }
            return !state.isPumping
        }
        guard starts else { return }
        Task { [self] in
            while true {
                let next = state.withLock { state -> Message? in
                    if state.queue.isEmpty {
                        state.isPumping = false
                        return nil
                    }
                    return state.queue.removeFirst()
                }
                guard let next, (try? await inner.send(next)) != nil else { return }
            }
        }
    }

    func receive() async throws(Close) -> [Message] {
        do throws(Close) {
            return try await receiveInner()
        } catch {
            if error != .cancelled { shared.hasEnded.withLock { $0 = true } }
            if mutation == .leavesReceiveWaiting, error.code == .restarting {
                try? await Task.sleep(for: .seconds(3600))
            }
            if mutation == .losesOrigin { throw Close(error.code, reason: error.reason, origin: .path) }
            throw error
        }
    }

    private func receiveInner() async throws(Close) -> [Message] {
        switch mutation {
        case .losesEmptyMessages:
            while true {
                let messages = try await inner.receive().filter { !$0.payload.isEmpty }
                if !messages.isEmpty { return messages }
            }
        case .doublesMessages:
            let messages = try await inner.receive()
            return messages + messages
        case .takesTextForBinary:
            return try await inner.receive().map { Message($0.payload, delivery: $0.delivery) }
        case .hidesUnreliable: return try await inner.receive().map { Message($0.payload, format: $0.format) }
        case .letsTwoReceive:
            return try await retryingMisuse { () async throws(Close) in try await self.inner.receive() }
        case .neverCancelsReceive:
            return try await unreachable { [inner] () async throws(Close) in try await inner.receive() }
        case .losesOnCancelledReceive:
            let messages = try await inner.receive()
            try? await Task.sleep(for: .milliseconds(2))
            if Task.isCancelled { throw .cancelled }
            return messages
        default: return try await inner.receive()
        }
    }

    func openStream() async throws(Close) -> any Stream {
        let opened = state.withLock { state in
            state.opened += 1
            return state.opened
        }
        let limit = mutation == .hangsAbove64Streams ? 64 : mutation == .hangsAbove512Streams ? 512 : Int.max
        if opened > limit { try? await Task.sleep(for: .seconds(3600)) }
        if mutation == .neverCancelsOpenStream {
            return wrap(try await unreachable { [inner] () async throws(Close) in try await inner.openStream() })
        }
        return wrap(try await inner.openStream())
    }

    func acceptStream() async throws(Close) -> any Stream {
        let stream = try await inner.acceptStream()
        if mutation == .losesOnCancelledAcceptStream {
            try? await Task.sleep(for: .milliseconds(2))
            if Task.isCancelled { throw .cancelled }
        }
        return wrap(stream)
    }

    private func wrap(_ stream: any Stream) -> MutantStream {
        MutantStream(stream, mutation, socket: inner, isDialer: isDialer, shared: shared)
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        let mine = Close(code, reason: reason, origin: .local)
        switch mutation {
        case .losesCode:
            await inner.close(.normal, reason: reason)
            return mine
        case .losesReason:
            await inner.close(code, reason: "")
            return mine
        case .sendsSyntheticCodes:
            await inner.close(code.isSynthetic ? .goingAway : code, reason: reason)
            return mine
        case .cutsReasonsShort:
            await inner.close(code, reason: String(reason.prefix(20)))
            return mine
        case .closesTwice:
            await inner.close(code, reason: reason)
            return mine
        case .losesItsWordInSimultaneousClose:
            let close = await inner.close(code, reason: reason)
            return close.origin == .local ? close : .pathLost(TransportError(.pathReset, "reset"))
        default:
            return await inner.close(code, reason: reason)
        }
    }
}
