internal import TransportKit

/// One end of a stream.
final class MemoryStream: Stream {
    let id: UInt64
    private let path: MemoryPath
    private let end: PathEnd

    init(id: UInt64, path: MemoryPath, end: PathEnd) {
        self.id = id
        self.path = path
        self.end = end
    }

    deinit {
        path.change { [id, end] state, now in state.release(id, at: end, now) }
    }

    func read(upTo limit: Int) async throws(StreamError) -> Bytes? {
        guard limit > 0 else { throw .misuse("a read wants at least one byte") }
        let signal = path.change { [id, end] state, _ -> Signal? in
            guard let half = state.streams[id]?[end], !half.isReading else { return nil }
            state.streams[id]?[end].isReading = true
            return half.reader
        }
        guard let signal else { throw .misuse("another task reads already") }
        defer { path.change { [id, end] state, _ in state.streams[id]?[end].isReading = false } }
        let answer = await path.ask(signal) { [id, end] state, now -> Step<StreamRead> in
            let step = state.read(id, at: end, upTo: limit, now)
            if case .done(let found) = step { state.consume(found, of: id, at: end) }
            return step
        }
        switch answer {
        case .bytes(let bytes): return bytes
        case .finished: return nil
        case .failed(let error): throw error
        case nil:
            await reset(0)
            throw .cancelled
        }
    }

    func write(_ bytes: Bytes) async throws(StreamError) {
        let signal = path.change { [id, end] state, _ -> Signal? in
            guard let half = state.streams[id]?[end.other], !half.isWriting else { return nil }
            state.streams[id]?[end.other].isWriting = true
            return half.writer
        }
        guard let signal else { throw .misuse("another task writes already") }
        defer { path.change { [id, end] state, _ in state.streams[id]?[end.other].isWriting = false } }
        var rest = bytes
        while true {
            let part = rest
            let answer = await path.ask(signal) { [id, end] state, now -> Step<Result<Bytes, StreamError>> in
                if let refusal = state.writeRefusal(id, from: end, now) { return .done(.failure(refusal)) }
                var left = part
                state.write(&left, to: id, from: end, now)
                // An empty write is done at once; any other has moved on or waits for the reader.
                if left.count < part.count || part.isEmpty { return .done(.success(left)) }
                return .wait(until: state.nextChange(at: end))
            }
            guard let answer else {
                await reset(0)
                throw .cancelled
            }
            rest = try answer.get()
            if rest.isEmpty { return }
        }
    }

    func finish() async throws(StreamError) {
        let refusal = path.change { [id, end] state, now -> StreamError? in
            let refusal = state.writeRefusal(id, from: end, now)
            if refusal == nil { state.finish(id, from: end, now) }
            // Finishing twice says the same thing twice.
            return refusal == .finished ? nil : refusal
        }
        if let refusal { throw refusal }
    }

    func reset(_ code: UInt64) async {
        path.change { [id, end] state, now in state.reset(id, code: code, from: end, now) }
    }
}
