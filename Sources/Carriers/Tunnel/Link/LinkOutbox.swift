package import TransportKit

/// Everything that one end of a link has to send: what it says itself first, then its sessions in turn.
package struct LinkOutbox<Key: Hashable & Sendable>: Sendable {
    /// What a batch took of a session.
    package struct Taken: Sendable {
        package let key: Key
        package let cost: UInt64
    }

    private struct Entry: Sendable {
        /// What a change made of an entry.
        struct News {
            var readyChange = 0
            var mustQueue = false
            var isEnded = false
        }

        var lane: SendLane
        var isReady = false
        /// Whether it has a place in ``LinkOutbox/turns``.
        var isQueued = false

        mutating func change(_ body: (inout SendLane) -> Void) -> News {
            body(&lane)
            let wasReady = isReady
            isReady = lane.isReady
            let news = News(
                readyChange: (isReady ? 1 : 0) - (wasReady ? 1 : 0), mustQueue: isReady && !isQueued,
                isEnded: lane.isEnded)
            isQueued = isQueued || isReady
            return news
        }
    }

    /// How much a session sends before the next one has its turn.
    private static var turnBytes: Int { 8_192 }

    private var own = Fifo<Bytes>()
    private var lanes: [Key: Entry] = [:]
    private var turns = Fifo<Key>()
    private var readyCount = 0
    private var taken: [Taken] = []
    /// What waits of what this end says itself: the bytes of each message and 64 more.
    package private(set) var ownBytes = 0
    /// How many unreliable frames were dropped because too many waited.
    package private(set) var dropped = 0

    package init() {}

    /// Whether ``next(upTo:)`` gives something. Where it becomes true, a writer that waits is to be woken.
    package var isReady: Bool { !own.isEmpty || readyCount > 0 }

    /// How many sessions there are.
    package var count: Int { lanes.count }

    /// Takes a whole message of the link that goes before any frame of a session.
    package mutating func say(_ message: Bytes) {
        own.append(message)
        ownBytes += message.count + DoorLimits.frameCost
    }

    // MARK: - Sessions

    /// Begins a session.
    ///
    /// - Precondition: there is none of this key.
    package mutating func open(_ key: Key, _ lane: SendLane) {
        let old = lanes.updateValue(Entry(lane: lane), forKey: key)
        precondition(old == nil, "the session has begun already")
        change(key) { _ in }
    }

    /// Whether the session is there, and its end has not gone.
    package func contains(_ key: Key) -> Bool { lanes[key] != nil }

    /// What waits of a session, as ``SendLane/waitingCost`` has it.
    package func waitingCost(of key: Key) -> UInt64 { lanes[key]?.lane.waitingCost ?? 0 }

    /// How much of that is bulk.
    package func waitingBulkCost(of key: Key) -> UInt64 { lanes[key]?.lane.waitingBulkCost ?? 0 }

    /// Whether a frame of the session has gone, so that the other end may know it.
    package func hasSent(_ key: Key) -> Bool { lanes[key]?.lane.hasSent ?? false }

    /// Takes a frame of a session; where there is none, the frame is dropped.
    ///
    /// - Returns: false where it is unreliable and was dropped because too many wait.
    @discardableResult
    package mutating func put(_ frame: TunnelFrame, of key: Key) -> Bool {
        var isKept = true
        change(key) { isKept = $0.put(frame) }
        if !isKept { dropped += 1 }
        return isKept
    }

    /// The other end may have been sent `total` of a session.
    package mutating func credit(_ total: UInt64, of key: Key) {
        change(key) { $0.credit(total) }
    }

    /// Sends the end of a session once the rest of it has gone.
    package mutating func finish(_ key: Key) {
        change(key) { $0.finish() }
    }

    /// Drops what waits of a session and sends its end.
    package mutating func abandon(_ key: Key) {
        change(key) { $0.abandon() }
    }

    /// Drops a session with all that waits, without an end.
    package mutating func remove(_ key: Key) {
        guard let entry = lanes.removeValue(forKey: key) else { return }
        if entry.isReady { readyCount -= 1 }
        // At once: where nobody reads, sessions that come and go must not leave their places behind.
        if entry.isQueued { turns.removeAll { $0 == key } }
    }

    // MARK: - For the writer

    /// Takes what goes next, about as many bytes as asked for; empty where nothing may.
    package mutating func next(upTo bytes: Int = 65_536) -> [Message] {
        taken.removeAll(keepingCapacity: true)
        var batch: [Message] = []
        var left = bytes
        while left > 0, let message = own.popFirst() {
            ownBytes -= message.count + DoorLimits.frameCost
            left -= message.count
            batch.append(Message(message))
        }
        while left > 0, let key = turns.popFirst() {
            guard let index = lanes.index(forKey: key) else { continue }
            lanes.values[index].isQueued = false
            var turn = Self.turnBytes
            while turn > 0, left > 0, let frame = lanes.values[index].lane.next() {
                if frame.cost > 0 { taken.append(Taken(key: key, cost: frame.cost)) }
                let delivery = frame.kind.delivery
                let message = frame.encoded()
                turn -= message.count
                left -= message.count
                batch.append(Message(message, delivery: delivery))
            }
            change(key) { _ in }
        }
        return batch
    }

    /// What the last batch took of each session, once the wire has taken it: credit can be given back for it now.
    package mutating func takeTaken() -> [Taken] {
        defer { taken = [] }
        return taken
    }

    /// Changes a session, queues it where it has become ready, and forgets it where its end has gone.
    private mutating func change(_ key: Key, _ body: (inout SendLane) -> Void) {
        guard let index = lanes.index(forKey: key) else { return }
        let news = lanes.values[index].change(body)
        readyCount += news.readyChange
        if news.mustQueue { turns.append(key) }
        if news.isEnded { lanes.remove(at: index) }
    }
}

extension TunnelFrame.Kind {
    /// How a frame of this kind is sent.
    package var delivery: Delivery {
        switch self {
        case .begin, .control: .control
        case .bulk: .bulk
        case .unreliable: .unreliable
        }
    }
}
