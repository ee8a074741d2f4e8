import Synchronization
import TransportKit

final class MutantStream: Stream {
    /// What the streams of a mutant socket share.
    final class Shared: Sendable {
        let hasEnded = Mutex(false)
        let isWriting = Mutex(false)
    }

    private struct State {
        var hasWritten = false
        var hasFinished = false
        var hasEnded = false
        var held: Bytes?
        var queue: [Bytes] = []
        var isPumping = false
    }

    private let inner: any Stream
    private let mutation: Mutation
    private let socket: any Socket
    private let isDialer: Bool
    private let shared: Shared
    private let state = Mutex(State())

    init(_ inner: any Stream, _ mutation: Mutation, socket: any Socket, isDialer: Bool, shared: Shared) {
        self.inner = inner
        self.mutation = mutation
        self.socket = socket
        self.isDialer = isDialer
        self.shared = shared
    }

    var id: UInt64 { mutation == .numbersStreamsTwice ? inner.id / 2 : inner.id }

    func read(upTo limit: Int) async throws(StreamError) -> Bytes? {
        switch mutation {
        case .closesBothDirections:
            if state.withLock({ $0.hasFinished }) { return nil }
            return try await inner.read(upTo: limit)
        case .endsOnlyOnce:
            let bytes = try await inner.read(upTo: limit)
            if bytes == nil, state.withLock({ $0.hasEnded }) { throw .reset(0) }
            state.withLock { $0.hasEnded = bytes == nil }
            return bytes
        case .showsResetAsEnd:
            do throws(StreamError) { return try await inner.read(upTo: limit) } catch {
                if error.resetCode != nil { return nil }
                throw error
            }
        case .letsTwoRead:
            return try await retryingMisuse { () async throws(StreamError) in try await self.inner.read(upTo: limit) }
        case .keepsStreamOfCancelledRead:
            return try await abandonable { [inner] () async throws(StreamError) in try await inner.read(upTo: limit) }
        case .losesFinishedStreams:
            if shared.hasEnded.withLock({ $0 }) { throw .socketClosed(.cancelled) }
            return try await inner.read(upTo: limit)
        default:
            return try await inner.read(upTo: limit)
        }
    }

    func write(_ bytes: Bytes) async throws(StreamError) {
        if !bytes.isEmpty { state.withLock { $0.hasWritten = true } }
        switch mutation {
        case .losesBytes: try await inner.write(bytes.count == 729 ? bytes.dropFirst() : bytes)
        case .buffersBytesWithoutBound: pump(bytes)
        case .sharesOneWindow:
            while !shared.isWriting.withLock({ isWriting in
                defer { isWriting = true }
                return !isWriting
            }) {
                if Task.isCancelled { throw .cancelled }
                await Task.yield()
            }
            defer { shared.isWriting.withLock { $0 = false } }
            try await inner.write(bytes)
        case .letsTwoWrite:
            try await retryingMisuse { () async throws(StreamError) in try await self.inner.write(bytes) }
        case .keepsStreamOfCancelledWrite:
            try await abandonable { [inner] () async throws(StreamError) in try await inner.write(bytes) }
        case .losesLastWrite:
            let before = state.withLock { state in
                defer { state.held = bytes }
                return state.held
            }
            if let before { try await inner.write(before) } else { try await inner.write(bytes.prefix(1)) }
        case .takesBytesAfterFinish:
            if state.withLock({ $0.hasFinished }) { return }
            try await inner.write(bytes)
        default: try await inner.write(bytes)
        }
    }

    private func pump(_ bytes: Bytes) {
        let starts = state.withLock { state in
            state.queue.append(bytes)
            defer { state.isPumping = true }
            return !state.isPumping
        }
        guard starts else { return }
        Task { [self] in
            while true {
                let next = state.withLock { state -> Bytes? in
                    if state.queue.isEmpty {
                        state.isPumping = false
                        return nil
                    }
                    return state.queue.removeFirst()
                }
                guard let next, (try? await inner.write(next)) != nil else { return }
            }
        }
    }

    func finish() async throws(StreamError) {
        let hasWritten = state.withLock { state in
            state.hasFinished = true
            return state.hasWritten
        }
        if mutation == .forgetsEmptyFinish, !hasWritten { return }
        try await inner.finish()
    }

    func reset(_ code: UInt64) async {
        await inner.reset(code)
        if mutation == .endsSocketWithStream { await socket.close(.internalError, reason: "a stream was reset") }
    }

    private func retryingMisuse<Value>(
        _ call: () async throws(StreamError) -> Value
    ) async throws(StreamError) -> Value {
        while true {
            do throws(StreamError) {
                return try await call()
            } catch {
                guard error.isMisuse else { throw error }
                if Task.isCancelled { throw .cancelled }
                await Task.yield()
            }
        }
    }

    /// Gives up waiting for a call when the task is cancelled, and leaves the call alone.
    private func abandonable<Value: Sendable>(
        _ call: @escaping @Sendable () async throws(StreamError) -> Value
    ) async throws(StreamError) -> Value {
        let inbox = Inbox<Result<Value, StreamError>>()
        Task {
            do throws(StreamError) { inbox.put(.success(try await call())) } catch { inbox.put(.failure(error)) }
        }
        guard let result = try? await inbox.takeFirst() else { throw .cancelled }
        return try result.get()
    }
}
