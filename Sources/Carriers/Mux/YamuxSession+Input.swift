internal import TransportKit

extension YamuxSession {
    /// Takes in bytes that arrived, cut anywhere.
    ///
    /// - Throws: ``YamuxError`` at the first broken rule; what came before it counts.
    mutating func receive(_ bytes: Bytes) throws(YamuxError) {
        var rest = bytes
        while true {
            if let body {
                guard body.left == 0 || !rest.isEmpty else { return }
                let part = rest.takeFirst(min(body.left, rest.count))
                // A small part of a large message is copied: it must not keep the rest of it alive.
                deliver(part.count * 8 < bytes.count ? part.withUnsafeBytes { Bytes(copying: $0) } : part)
            } else {
                guard let header = try takeHeader(&rest) else { return }
                try handle(header)
                hasSeenFrame = true
            }
        }
    }

    private mutating func takeHeader(_ rest: inout Bytes) throws(YamuxError) -> YamuxHeader? {
        if partialHeader.isEmpty, rest.count >= YamuxHeader.size {
            return try YamuxHeader.read(from: rest.takeFirst(YamuxHeader.size))
        }
        let missing = YamuxHeader.size - partialHeader.count
        partialHeader.append(contentsOf: rest.takeFirst(min(missing, rest.count)))
        guard partialHeader.count == YamuxHeader.size else { return nil }
        defer { partialHeader = Bytes() }
        return try YamuxHeader.read(from: partialHeader)
    }

    private mutating func deliver(_ part: Bytes) {
        guard var body else { return }
        body.left -= part.count
        self.body = body.left == 0 ? nil : body
        guard !body.isIgnored, let state = streams[body.stream], !state.wasReset else { return }
        let hasEnded = body.left == 0 && body.hasEnd
        if hasEnded { streams[body.stream]?.hasReceivedEnd = true }
        if state.isAbandoned {
            giveBack(part.count, to: body.stream)
        } else {
            streams[body.stream]?.received.append(part)
            if !part.isEmpty || hasEnded { events.append(.readable(body.stream)) }
        }
        if hasEnded { settle(body.stream) }
    }

    private mutating func handle(_ header: YamuxHeader) throws(YamuxError) {
        switch header.kind {
        case .ping:
            guard header.stream == 0 else { throw .streamOfSession(header.stream) }
            try ping(header)
        case .goAway:
            guard header.stream == 0 else { throw .streamOfSession(header.stream) }
            guard header.length == YamuxGoAway.normal.rawValue else { throw .wentAway(header.length) }
            isPeerGoingAway = true
            events.append(.goingAway)
        case .data, .windowUpdate:
            try begin(header)
            if header.kind == .data { try data(header) } else { try windowUpdate(header) }
            if header.flags.contains(.rst) { try peerReset(header.stream) }
        }
    }

    private mutating func ping(_ header: YamuxHeader) throws(YamuxError) {
        if header.flags.contains(.syn) {
            if !hasSeenFrame, header.length & 0xffff_0000 == Self.limitMark {
                learnLimit(Int(header.length & 0xffff))
            }
            try makeRoomForAnswer()
            YamuxHeader(kind: .ping, flags: .ack, stream: 0, length: header.length).append(to: &urgent)
        } else if header.flags.contains(.ack) {
            // A peer that answers our first ping and has not said a limit before has none to say.
            if header.length & 0xffff_0000 == Self.limitMark {
                learnLimit(peerLimit ?? .max)
            } else {
                events.append(.pong(header.length))
            }
        }
    }

    private mutating func learnLimit(_ limit: Int) {
        guard peerLimit == nil else { return }
        peerLimit = limit
        if mayOpen { events.append(.mayOpen) }
    }

    private func makeRoomForAnswer() throws(YamuxError) {
        guard urgent.count < Self.urgentLimit, updates.count < settings.maxStreams + Self.urgentLimit / 8 else {
            throw .flood
        }
    }

    /// Handles SYN and ACK, and refuses numbers that cannot be.
    private mutating func begin(_ header: YamuxHeader) throws(YamuxError) {
        let id = header.stream
        if header.flags.contains(.syn) {
            guard id != 0, !isOwn(id) else { throw .foreignNumber(id) }
            guard id > lastPeerStream else { throw .reusedNumber(id) }
            if !settings.isDialer, lastPeerStream < Lane.bulk {
                guard id == (lastPeerStream == 0 ? Lane.control : Lane.bulk) else { throw .lanesMissing(id) }
            }
            lastPeerStream = id
            try accept(id)
        } else {
            // The number of a stream that was, and is over, is no mistake: frames of it may still be on their way.
            guard id != 0, isOwn(id) ? wasOpened(id) : id <= lastPeerStream else { throw .neverOpened(id) }
        }
    }

    private func wasOpened(_ id: UInt32) -> Bool { isLane(id) || id < firstUnopened }

    private mutating func accept(_ id: UInt32) throws(YamuxError) {
        if isLane(id) {
            streams[id]?.isEstablished = true
            makeReady(id)
        } else {
            try makeRoomForAnswer()
            guard peerOpenCount < settings.maxStreams else {
                YamuxHeader(kind: .windowUpdate, flags: .rst, stream: id, length: 0).append(to: &urgent)
                return
            }
            peerOpenCount += 1
            streams[id] = YamuxStreamState()
            events.append(.opened(id))
        }
        streams[id]?.flagsDue = .ack
        makeUpdateDue(id)
    }

    private mutating func data(_ header: YamuxHeader) throws(YamuxError) {
        let length = Int(header.length)
        let hasEnd = header.flags.contains(.fin)
        guard let state = streams[header.stream], !state.wasReset, !header.flags.contains(.rst) else {
            body = Body(stream: header.stream, left: length, hasEnd: false, isIgnored: true)
            return
        }
        guard length == 0 || !state.hasReceivedEnd else { throw .dataAfterEnd(header.stream) }
        guard length <= state.receiveWindow else {
            throw .overWindow(stream: header.stream, announced: header.length, window: state.receiveWindow)
        }
        guard !hasEnd || !isLane(header.stream) else { throw .laneEnded(header.stream) }
        streams[header.stream]?.receiveWindow = state.receiveWindow - length
        body = Body(stream: header.stream, left: length, hasEnd: hasEnd, isIgnored: false)
    }

    private mutating func windowUpdate(_ header: YamuxHeader) throws(YamuxError) {
        guard let state = streams[header.stream], !state.wasReset else { return }
        let window = state.sendWindow + Int(header.length)
        guard window <= Int(UInt32.max) else { throw .windowOverflow(header.stream) }
        streams[header.stream]?.sendWindow = window
        makeReady(header.stream)
        // Some implementations say the end with a window update.
        if header.flags.contains(.fin), !state.hasReceivedEnd {
            guard !isLane(header.stream) else { throw .laneEnded(header.stream) }
            streams[header.stream]?.hasReceivedEnd = true
            events.append(.readable(header.stream))
            settle(header.stream)
        }
    }

    private mutating func peerReset(_ id: UInt32) throws(YamuxError) {
        guard !isLane(id) else { throw .laneEnded(id) }
        guard let state = streams[id], !state.wasReset else { return }
        drop(id)
        events.append(.reset(id))
    }
}
