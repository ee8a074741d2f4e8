internal import TransportKit

extension YamuxSession {
    /// Whether everything that was written and can be sent has been taken.
    var hasOutput: Bool {
        if !urgent.isEmpty || !updates.isEmpty || !ready.isEmpty { return true }
        return streams[Lane.control]?.canSend == true || streams[Lane.bulk]?.canSend == true
    }

    /// Whether everything that was written has been taken, and every end said.
    var isFlushed: Bool {
        urgent.isEmpty && updates.isEmpty && queuedBytes == 0 && ready.isEmpty
    }

    /// Takes what to send next: answers and window updates, then control, then bulk, then the streams in turn.
    ///
    /// - Parameter limit: about how much; what is urgent always goes whole.
    mutating func takeOutput(upTo limit: Int) -> Bytes {
        let frames = updates.count + ready.count + 4 + min(limit, queuedBytes) / Self.frameLimit
        var output = Bytes(capacity: min(limit, urgent.count + queuedBytes + frames * YamuxHeader.size))
        if !urgent.isEmpty {
            output.append(contentsOf: urgent)
            urgent = Bytes()
        }
        while let id = updates.popFirst() { appendUpdate(id, to: &output) }
        appendLane(Lane.control, to: &output, limit: limit)
        // Bulk goes first and leaves the streams the half of it, so that it cannot silence them.
        appendLane(Lane.bulk, to: &output, limit: ready.isEmpty ? limit : max(limit / 2, output.count + 1))
        while output.count < limit, let id = ready.popFirst() {
            streams[id]?.isReady = false
            // Nobody waits behind a stream that is alone, and long frames make long reads and writes for the peer.
            appendData(
                id, upTo: ready.isEmpty ? max(limit - output.count, Self.frameLimit) : Self.frameLimit, to: &output)
            makeReady(id)
        }
        return output
    }

    private mutating func appendUpdate(_ id: UInt32, to output: inout Bytes) {
        guard var state = streams[id] else { return }
        state.isUpdateDue = false
        defer { streams[id] = state }
        guard !state.wasReset else { return }
        var growth = 0
        if !state.hasReceivedEnd, state.unreturned > 0 {
            // Whoever reads gets a larger window, step by step; whoever does not holds no memory.
            let target = isLane(id) ? settings.laneWindow : settings.streamWindow
            let window = max(state.window, min(state.window * 2, target))
            growth = state.unreturned + window - state.window
            state.window = window
            state.receiveWindow += growth
            state.unreturned = 0
        }
        guard growth > 0 || !state.flagsDue.isEmpty else { return }
        YamuxHeader(kind: .windowUpdate, flags: state.flagsDue, stream: id, length: UInt32(growth)).append(to: &output)
        state.flagsDue = []
    }

    private mutating func appendLane(_ id: UInt32, to output: inout Bytes, limit: Int) {
        streams[id]?.isReady = false
        while output.count < limit, streams[id]?.canSend == true { appendData(id, upTo: Self.frameLimit, to: &output) }
        makeReady(id)
    }

    /// Puts one frame of data, and the end where it follows, into the output.
    private mutating func appendData(_ id: UInt32, upTo most: Int, to output: inout Bytes) {
        guard streams[id]?.canSend == true else { return }
        // It is there, as the line above has seen; in place, since a copy of the queue would be one of all it holds.
        let hasEnded = Self.appendFrame(of: id, &streams[id]!, upTo: most, to: &output, queuedBytes: &queuedBytes)
        events.append(.writable(id))
        if hasEnded { settle(id) }
    }

    private static func appendFrame(
        of id: UInt32, _ state: inout YamuxStreamState, upTo most: Int, to output: inout Bytes, queuedBytes: inout Int
    ) -> Bool {
        let length = min(state.queue.count, state.sendWindow, most)
        let hasEnd = state.wantsEnd && length == state.queue.count
        YamuxHeader(kind: .data, flags: hasEnd ? .fin : [], stream: id, length: UInt32(length)).append(to: &output)
        state.queue.move(length, to: &output)
        state.sendWindow -= length
        queuedBytes -= length
        if hasEnd { state.hasSentEnd = true }
        return hasEnd
    }
}
