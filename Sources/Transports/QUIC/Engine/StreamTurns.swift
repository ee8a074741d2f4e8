/// Streams that have something to send, in turns, so that none holds up the others (R22).
struct StreamTurns {
    private var streams: [StreamState] = []
    private var first = 0

    var isEmpty: Bool { first == streams.count }

    /// Puts a stream behind the others, unless it stands in line already.
    mutating func append(_ stream: StreamState) {
        guard !stream.isQueued else { return }
        stream.isQueued = true
        streams.append(stream)
    }

    /// Takes the stream whose turn it is.
    mutating func takeFirst() -> StreamState? {
        guard first < streams.count else { return nil }
        let stream = streams[first]
        stream.isQueued = false
        first += 1
        if first == streams.count {
            streams.removeAll(keepingCapacity: streams.capacity <= 64)
            first = 0
        } else if first >= 64, first * 2 >= streams.count {
            streams.removeFirst(first)
            first = 0
        }
        return stream
    }

    /// Gives back its turn to a stream that could not use it.
    mutating func putBack(_ stream: StreamState) {
        guard !stream.isQueued else { return }
        stream.isQueued = true
        if first > 0 {
            first -= 1
            streams[first] = stream
        } else {
            streams.insert(stream, at: 0)
        }
    }
}
