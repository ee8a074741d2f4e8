internal import TransportKit

/// One application stream of a QUIC connection.
final class QUICStream: Stream {
    let id: UInt64
    private let state: StreamState
    private let connection: LoopBound<QUICConnection>

    init(_ state: StreamState, _ connection: LoopBound<QUICConnection>) {
        id = UInt64(state.id)
        self.state = state
        self.connection = connection
    }

    deinit {
        connection.post { [state] in $0.release(state) }
    }

    func read(upTo limit: Int) async throws(StreamError) -> Bytes? {
        guard limit > 0 else { throw .misuse("a read wants at least one byte") }
        if let connection = connection.ifOnLoop, !state.isReading {
            switch connection.read(state, upTo: limit) {
            case .bytes(let bytes): return bytes
            case .ended: return nil
            case .failed(let error): throw error
            case .mustWait: break
            }
        }
        var isFirst = true
        while true {
            let answer = await connection.run { [state, isFirst] connection -> QUICConnection.Reading in
                if isFirst, state.isReading { return .failed(.misuse("another task reads already")) }
                let found = connection.read(state, upTo: limit)
                if case .mustWait = found { state.isReading = true } else { state.isReading = false }
                return found
            }
            switch answer {
            case .bytes(let bytes): return bytes
            case .ended: return nil
            case .failed(let error): throw error
            case .mustWait: isFirst = false
            }
            guard await state.readable.wait() else {
                await abandon { $0.isReading = false }
                throw .cancelled
            }
        }
    }

    func write(_ bytes: Bytes) async throws(StreamError) {
        var left: Bytes? = bytes
        if let connection = connection.ifOnLoop, !state.isWriting {
            switch connection.write(bytes, to: state) {
            case .accepted: return
            case .failed(let error): throw error
            case .mustWait:
                state.isWriting = true
                left = nil
            }
        }
        while true {
            let answer = await connection.run { [state, left] connection -> QUICConnection.Writing in
                if left != nil, state.isWriting { return .failed(.misuse("another task writes already")) }
                let answer = connection.write(left ?? Bytes(), to: state)
                if case .mustWait = answer { state.isWriting = true } else { state.isWriting = false }
                return answer
            }
            switch answer {
            case .accepted: return
            case .failed(let error): throw error
            // The bytes are the connection's now; the writer waits until few enough are left.
            case .mustWait: left = nil
            }
            guard await state.writable.wait() else {
                await abandon { $0.isWriting = false }
                throw .cancelled
            }
        }
    }

    func finish() async throws(StreamError) {
        let answer = await connection.run { [state] connection -> QUICConnection.Writing in
            if state.isWriting { return .failed(.misuse("another task writes still")) }
            return connection.finish(state)
        }
        if case .failed(let error) = answer { throw error }
    }

    func reset(_ code: UInt64) async {
        await connection.run { [state] in $0.abort(state, code: code) }
    }

    /// The waiting task was cancelled: bytes may be half way, so the stream is over (R196).
    private func abandon(_ change: @escaping @Sendable (StreamState) -> Void) async {
        await connection.run { [state] connection in
            change(state)
            connection.abort(state, code: 0)
        }
    }
}
