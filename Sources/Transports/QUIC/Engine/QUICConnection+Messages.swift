internal import TransportKit

extension QUICConnection {
    /// What became of an attempt to send.
    enum Sending: Sendable {
        case accepted
        /// There is no room; the task's signal will be given.
        case mustWait
        case failed(Close)
    }

    /// How many bytes of datagrams may wait for the path before the oldest is dropped.
    private var datagramBacklog: Int { min(limits.sendBufferBytes, 1 << 18) }

    /// Takes a batch whole or not at all. Tasks that have to wait are served in turn.
    func send(_ messages: [Message], waiter: Signal?) -> Sending {
        if let verdict {
            if let waiter { forgetWaiter(waiter) }
            return .failed(verdict)
        }
        guard let control else { return .failed(.misuse("the socket is not open yet")) }
        let isFirst = sendWaiters.isEmpty || sendWaiters[0] === waiter
        guard isFirst, hasRoom(for: messages, control) else {
            if let waiter, !sendWaiters.contains(where: { $0 === waiter }) { sendWaiters.append(waiter) }
            return .mustWait
        }
        if let waiter, sendWaiters.first === waiter { sendWaiters.removeFirst() }
        let datagramRoom = library.datagramRoom
        for message in messages {
            switch message.delivery {
            case .unreliable where message.payload.count <= datagramRoom:
                queue(datagram: message.payload)
            case .control, .unreliable:
                // Too large for a datagram, or the peer takes none (R9).
                control.outbound.append(message: message.payload)
            case .bulk:
                bulk?.outbound.append(message: message.payload)
            }
        }
        if let bulk, bulk.outbound.hasWork, !bulk.isBlocked { sendable.append(bulk) }
        wantToSend()
        if !sendWaiters.isEmpty { wakeSender() }
        return .accepted
    }

    /// Whether each path that a batch takes is below its bound.
    private func hasRoom(for messages: [Message], _ control: StreamState) -> Bool {
        var isRoom = true
        for message in messages {
            switch message.delivery {
            case .unreliable where message.payload.count <= library.datagramRoom: break
            case .control, .unreliable: isRoom = isRoom && control.outbound.unsent < limits.sendBufferBytes
            case .bulk:
                guard let bulk = bulk ?? openBulk() else { return false }
                isRoom = isRoom && bulk.outbound.unsent < limits.sendBufferBytes
            }
            if !isRoom { return false }
        }
        return isRoom
    }

    /// Opens the stream for bulk (R7); nil while the peer allows none.
    private func openBulk() -> StreamState? {
        guard let id = library.openStream(bidirectional: false) else { return nil }
        let stream = StreamState(id: id, isLocal: true, content: .none)
        var kind = Bytes(capacity: 1)
        Varint.append(FramedInput.bulkKind, to: &kind)
        stream.outbound.append(kind)
        sink.streams[id] = stream
        bulk = stream
        return stream
    }

    /// The peer refuses the bulk stream. The message under way is lost (R7); what came after it goes on a new stream,
    /// because nobody is told that the peer has refused: only trying to send tells.
    func bulkIsOver(_ stream: StreamState) {
        bulk = nil
        let rest = stream.outbound.unsentMessages
        if !rest.isEmpty, let next = openBulk() {
            for bytes in rest { next.outbound.append(bytes) }
            enqueue(next)
        }
        wakeSender()
    }

    /// A task that waited to send does so no longer.
    func forgetWaiter(_ waiter: Signal) {
        sendWaiters.removeAll { $0 === waiter }
        wakeSender()
    }

    private func queue(datagram: Bytes) {
        datagrams.append(datagram)
        datagramBytes += datagram.count
        while datagramBytes > datagramBacklog, datagrams.count > 1 {
            datagramBytes -= datagrams.removeFirst().count
            droppedDatagrams += 1
        }
    }

    /// The dialler's first words: the target, and the first message where there is one (R5). What the service has as early
    /// data is not said again.
    func sendTarget(_ target: Target, firstFlight: Bytes?) {
        guard !isTargetSent else { return }
        isTargetSent = true
        control?.outbound.append(message: Bytes(target.wireForm))
        if let firstFlight { control?.outbound.append(message: firstFlight) }
        wantToSend()
    }

    /// The application has taken messages: their credit goes back to the peer (R187).
    func taken(_ arrived: [Arrived]) {
        for item in arrived {
            if item.stream >= 0 {
                giveBack(item.credit, of: item.stream)
            } else {
                sink.datagramBytes -= item.credit
            }
        }
        wantToSend()
    }

    func giveBack(_ count: Int, of stream: Int64) {
        guard count > 0 else { return }
        // Only the library's own streams are asked, since one that it has forgotten needs no window.
        if sink.stream(stream) != nil { library.extend(stream: stream, by: count) }
        library.extendConnection(by: count)
    }

    /// Hands over what came in a form of ours.
    func settleMessages(_ now: Instant) {
        if !sink.arrivals.isEmpty {
            // By index: a second holder of the array would make it be copied when it is emptied.
            for index in 0..<sink.arrivals.count { settle(sink.arrivals[index], now) }
            sink.arrivals.removeAll(keepingCapacity: sink.arrivals.capacity <= 64)
        }
        if !sink.datagrams.isEmpty {
            let datagrams = sink.datagrams
            sink.datagrams = []
            for bytes in datagrams {
                let arrived = Arrived(
                    message: Message(bytes, delivery: .unreliable), stream: -1, credit: bytes.count)
                if !inbox.put(arrived) { sink.datagramBytes -= bytes.count }
            }
        }
        if !sink.surplus.isEmpty {
            for (id, count) in sink.surplus { giveBack(count, of: id) }
            sink.surplus = []
        }
        for stream in sink.takeUnknownStreams() { library.stopReading(stream.id, code: CloseCode.unsupported.rawValue) }
        guard let failure = sink.framingFailure, verdict == nil else { return }
        switch failure {
        case .tooLong(let announced, let limit):
            breakOff(.tooBig, "a message of \(announced) bytes was announced, \(limit) are allowed", now)
        case .badTarget:
            breakOff(.badTarget, "the target must have 1 to \(Target.limit) bytes", now)
        case .unknownKind:
            break
        }
    }

    private func settle(_ arrival: ConnectionSink.Arrival, _ now: Instant) {
        guard arrival.item.isTarget else {
            let message = Message(arrival.item.payload, delivery: arrival.delivery)
            let arrived = Arrived(message: message, stream: arrival.stream.id, credit: arrival.item.cost)
            if !inbox.put(arrived) { giveBack(arrived.credit, of: arrived.stream) }
            return
        }
        giveBack(arrival.item.cost, of: arrival.stream.id)
        guard verdict == nil else { return }
        guard let text = String(validating: arrival.item.payload), let target = Target(text) else {
            breakOff(.badTarget, "the target is not a path and query", now)
            return
        }
        owner?.connection(self, asksFor: target)
    }
}
