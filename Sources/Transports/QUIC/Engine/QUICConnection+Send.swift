internal import CNgtcp2
internal import TransportKit
internal import TransportTLS

/// Packets of one size, to be sent in one call.
struct OutgoingBatch {
    /// Where they lie in the room they were written to.
    let range: Range<Int>
    /// The size of each but the last, which may be shorter.
    let segmentBytes: Int
    let local: SocketAddress?
    let remote: SocketAddress?
    let ecn: UInt8
    /// Whether nothing is left to be sent, so that asking once more would be for nothing.
    var isLast = false
}

extension QUICConnection {
    /// The most packets in one call, as the kernel has it.
    private static let batchPackets = 64
    /// More than any frame of the library's own takes.
    private static let roomToSpare = 128
    /// Room for the largest packet.
    static let roomBytes = 65_536
    /// How many bytes of a stream may wait unsent while its writer goes on.
    var streamBacklog: Int { min(limits.streamWindowBytes, 1 << 18) }

    /// Writes the next packets that may be sent now; nil when there are none, after which the owner sets its timer.
    ///
    /// A batch must be handed to the kernel, or copied, before the next one is asked for.
    func nextBatch(into room: UnsafeMutableRawBufferPointer, now: Instant) -> OutgoingBatch? {
        isSendDue = false
        lastSent = now
        if let carried {
            self.carried = nil
            return carried
        }
        switch phase {
        case .gone, .draining: return nil
        case .closing: return unsafe closePacket(into: room, now: now)
        case .handshaking, .open, .lingering: break
        }
        unblockIfPossible()
        let isUsed = hasWork
        let batch = unsafe fillBatch(room, now)
        if let batch {
            library.sent(now, isPaced: isPaced)
            if isUsed { answers?.used(now: now) }
            noteSent(now)
            return batch
        }
        if isControlOver { breakOff(.protocolError, "the control stream ended", now) }
        if case .closing = phase { return unsafe closePacket(into: room, now: now) }
        if case .lingering = phase, hasDelivered {
            terminate(now)
            return unsafe closePacket(into: room, now: now)
        }
        return nil
    }

    /// Whether packets are spread over the round trip.
    ///
    /// The handshake is not, and neither is the target, which the initial window bounds (RFC 9002 §7.7). Until the first
    /// round trip is measured the library takes it for a tenth of a second, so that on a quick path the end of the
    /// handshake waited for milliseconds after the dial was done, and the next dial overtook it.
    private var isPaced: Bool {
        guard isEstablished else { return false }
        return role == .server || (control?.outbound.sentOffset ?? 0) > 0
    }

    private func fillBatch(_ room: UnsafeMutableRawBufferPointer, _ now: Instant) -> OutgoingBatch? {
        let largest = library.largestPacket
        let quantum = library.quantum
        var filled = 0
        var segment = 0
        var isLast = false
        while filled + largest <= room.count {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: room[filled..<filled + largest])
            let (size, tookBytes) = unsafe writePacket(rest, now)
            guard size > 0 else { break }
            // Frames of the library's own go in first: a packet with bytes of a stream that could have held more of them
            // leaves nothing behind.
            if case .open = phase, tookBytes, size <= largest - Self.roomToSpare, !hasWork, !isControlOver {
                isLast = true
            }
            if filled == 0 {
                library.beginBatch()
                segment = size
            } else if size > segment || !library.fitsBatch {
                // A probe for a larger packet, or one for another path: it goes on its own, right behind.
                let batch = makeBatch(0..<filled, segment)
                library.beginBatch()
                carried = makeBatch(filled..<filled + size, size)
                carried?.isLast = isLast
                return batch
            }
            filled += size
            if isLast || size < segment || filled >= quantum || filled / segment >= Self.batchPackets { break }
        }
        guard filled > 0 else { return nil }
        var batch = makeBatch(0..<filled, segment)
        batch.isLast = isLast
        return batch
    }

    /// Whether anything waits that could share a packet with the stream's bytes.
    private func hasWork(besides stream: StreamState) -> Bool {
        if !sendable.isEmpty || !datagrams.isEmpty { return true }
        return stream !== control && control?.outbound.hasWork == true
    }

    /// Where the batch leaves from.
    var batchLocal: SocketAddress? {
        let local = library.batchLocal
        return peerAddress?.address(of: local) ?? local
    }

    private func makeBatch(_ range: Range<Int>, _ segment: Int) -> OutgoingBatch {
        OutgoingBatch(
            range: range, segmentBytes: segment, local: batchLocal, remote: library.batchRemote,
            ecn: library.batchECN)
    }

    /// Writes one packet: the control stream first, then datagrams, then the other streams in turns.
    ///
    /// - Returns: its size, or 0 where nothing may be sent now, and whether it ends with bytes of a stream.
    private func writePacket(
        _ room: UnsafeMutableRawBufferPointer, _ now: Instant
    ) -> (size: Int, tookBytes: Bool) {
        var mayTryDatagram = true
        while true {
            let written: NgtcpConnection.Written
            if let control, control.outbound.hasWork, !control.isBlocked, !control.isSendingOver {
                written = unsafe write(control, room, now)
            } else if mayTryDatagram, let datagram = datagrams.first {
                mayTryDatagram = false
                written = unsafe write(datagram, room, now)
            } else if let stream = sendable.takeFirst() {
                guard stream.outbound.hasWork, !stream.isSendingOver else { continue }
                written = unsafe write(stream, room, now)
                if stream.outbound.hasWork, !stream.isBlocked, !stream.isSendingOver {
                    if written.size == 0 { sendable.putBack(stream) } else { sendable.append(stream) }
                }
            } else {
                written = NgtcpConnection.Written(size: unsafe library.write(into: room, now: now), accepted: -1)
            }
            switch written.size {
            case 0...:
                return (Int(written.size), written.accepted > 0)
            case TK_QUIC_WRITE_MORE, TK_QUIC_STREAM_DATA_BLOCKED, TK_QUIC_STREAM_SHUT_WR, TK_QUIC_STREAM_NOT_FOUND,
                TK_QUIC_INVALID_ARGUMENT, TK_QUIC_INVALID_STATE:
                continue
            default:
                handle(Int32(truncatingIfNeeded: written.size), now)
                return (0, false)
            }
        }
    }

    private func write(
        _ stream: StreamState, _ room: UnsafeMutableRawBufferPointer, _ now: Instant
    ) -> NgtcpConnection.Written {
        let written = unsafe withUnsafeTemporaryAllocation(of: ngtcp2_vec.self, capacity: OutboundQueue.pieces) {
            vectors in
            let (count, bytes, isAll) = unsafe stream.outbound.fill(vectors)
            let isLast = isAll && stream.outbound.isFinishing
            let written = unsafe library.write(
                UnsafeBufferPointer(rebasing: vectors[..<count]), of: stream.id, isLast: isLast,
                // Before the handshake is done the library may not go on with a packet that it has begun.
                mayAddMore: isEstablished && (!isAll || hasWork(besides: stream)), into: room, now: now)
            if written.accepted >= 0 {
                stream.outbound.sent(written.accepted, withEnd: isLast && written.accepted == bytes)
            }
            return written
        }
        switch written.size {
        case TK_QUIC_STREAM_DATA_BLOCKED:
            stream.isBlocked = true
            blocked.append(stream)
            if library.connectionWindow == 0 { isConnectionBlocked = true }
        case TK_QUIC_STREAM_SHUT_WR, TK_QUIC_STREAM_NOT_FOUND, TK_QUIC_INVALID_ARGUMENT, TK_QUIC_INVALID_STATE:
            sendingIsOver(stream)
        default:
            progressed(stream)
        }
        return written
    }

    private func write(
        _ datagram: Bytes, _ room: UnsafeMutableRawBufferPointer, _ now: Instant
    ) -> NgtcpConnection.Written {
        let written = unsafe library.write(datagram: datagram, into: room, now: now)
        let isHopeless: Bool =
            switch written.size {
            case TK_QUIC_INVALID_ARGUMENT, TK_QUIC_INVALID_STATE: true
            // The path has become narrower since it was accepted.
            default: written.accepted < 0 && datagram.count > library.datagramRoom
            }
        if isHopeless { droppedDatagrams += 1 }
        if isHopeless || written.accepted >= 0 {
            datagrams.removeFirst()
            datagramBytes -= datagram.count
        }
        return written
    }

    /// Tells whoever waits for a stream to have room.
    func progressed(_ stream: StreamState) {
        if stream.isWriting, stream.outbound.unsent <= streamBacklog { stream.writable.signal() }
        if stream === control || stream === bulk { wakeSender() }
    }

    /// Wakes the oldest task that waits to send.
    func wakeSender() {
        sendWaiters.first?.signal()
    }

    /// A stream has something to send.
    func enqueue(_ stream: StreamState) {
        if !stream.isControl, !stream.isBlocked, !stream.isSendingOver { sendable.append(stream) }
        wantToSend()
    }

    /// The peer wants no more of a stream, or the stream is gone.
    private func sendingIsOver(_ stream: StreamState) {
        stream.isSendingOver = true
        if stream.stopCode == nil { stream.stopCode = stream.resetCode ?? 0 }
        stream.wake()
        if stream === control { isControlOver = true }
        if stream === bulk { bulkIsOver(stream) }
    }

    /// The library says when a stream's window grows, but not when the connection's does.
    private func unblockIfPossible() {
        guard !blocked.isEmpty else { return }
        let isConnectionOpen = isConnectionBlocked && library.connectionWindow > 0
        if isConnectionOpen { isConnectionBlocked = false }
        // Nor does it say that the peer wants no more of a stream; only trying tells. A few at a time, in turns.
        if hasReceived {
            hasReceived = false
            for stream in blocked.prefix(8) { stream.isBlocked = false }
        }
        blocked.removeAll { stream in
            if isConnectionOpen { stream.isBlocked = false }
            guard !stream.isBlocked else { return false }
            if !stream.isControl, stream.outbound.hasWork, !stream.isSendingOver { sendable.append(stream) }
            return true
        }
    }
}
