internal import TransportKit

extension QUICConnection {
    /// What a read found.
    enum Reading: Sendable {
        case bytes(Bytes)
        case ended
        case mustWait
        case failed(StreamError)
    }

    /// What became of a write.
    enum Writing: Sendable {
        case accepted
        case mustWait
        case failed(StreamError)
    }

    // MARK: - What has happened

    /// Serves streams with what the library has reported.
    func settleStreams() {
        if !sink.opened.isEmpty {
            let opened = sink.opened
            sink.opened = []
            for stream in opened {
                if stream.isControl {
                    adoptControl(stream)
                } else if stream.isBidirectional, !acceptable.put(stream) {
                    abort(stream, code: CloseCode.goingAway.rawValue)
                }
            }
        }
        if !sink.touched.isEmpty {
            // By index: a second holder of the array would make it be copied when it is emptied.
            for index in 0..<sink.touched.count { settle(sink.touched[index]) }
            sink.touched.removeAll(keepingCapacity: sink.touched.capacity <= 64)
        }
        if !sink.closed.isEmpty {
            let closed = sink.closed
            sink.closed = []
            for stream in closed {
                sink.forget(stream)
                if stream === bulk { bulkIsOver(stream) }
                if stream.isControl { isControlOver = true }
                stream.wake()
                giveBackPlace(of: stream)
            }
        }
    }

    private func settle(_ stream: StreamState) {
        stream.isTouched = false
        if stream.isControl {
            // Only the control stream ends the session (R12). Its bytes in front of the end are served first.
            if stream.isReceivingOver { isControlOver = true }
            return
        }
        guard case .raw = stream.content else { return }
        if stream.resetCode != nil || stream.isReleased { dropInbound(stream) }
        if stream.isReading { stream.readable.signal() }
        if stream.isWriting, stream.isSendingOver || stream.outbound.unsent <= streamBacklog {
            stream.writable.signal()
        }
        if stream.outbound.hasWork, !stream.isBlocked, !stream.isSendingOver { sendable.append(stream) }
    }

    private func dropInbound(_ stream: StreamState) {
        giveBack(stream.inbound.removeAll(), of: stream.id)
    }

    /// The limit on the peer's streams counts those that are open or that nobody has accepted yet (R183).
    private func giveBackPlace(of stream: StreamState) {
        guard stream.isClosed, stream.isCounted, stream.isTaken || !stream.isBidirectional || verdict != nil else {
            return
        }
        stream.isCounted = false
        library.allowStream(bidirectional: stream.isBidirectional)
        wantToSend()
    }

    // MARK: - What the application does

    /// Opens a stream; nil while the peer's limit is reached, and then the waiter's signal will be given.
    func openStream(waiter: Signal) -> Result<StreamState?, Close> {
        if let verdict {
            streamWaiters.removeAll { $0 === waiter }
            return .failure(verdict)
        }
        guard let id = library.openStream(bidirectional: true) else {
            if !streamWaiters.contains(where: { $0 === waiter }) { streamWaiters.append(waiter) }
            return .success(nil)
        }
        streamWaiters.removeAll { $0 === waiter }
        let stream = StreamState(id: id, isLocal: true, content: .raw(InboundBytes()))
        sink.streams[id] = stream
        return .success(stream)
    }

    /// The application has accepted a stream of the peer's.
    func accepted(_ stream: StreamState) {
        stream.isTaken = true
        giveBackPlace(of: stream)
    }

    func read(_ stream: StreamState, upTo limit: Int) -> Reading {
        if !stream.inbound.isEmpty {
            let bytes = stream.inbound.take(upTo: limit)
            giveBack(bytes.count, of: stream.id)
            wantToSend()
            return .bytes(bytes)
        }
        // The end stays the end, whatever happens afterwards (R192).
        if stream.inbound.isEnded { return .ended }
        if let code = stream.resetCode { return .failed(.reset(code)) }
        if let verdict { return .failed(.socketClosed(verdict)) }
        return .mustWait
    }

    /// Takes bytes; while too many wait the writer does too.
    func write(_ bytes: Bytes, to stream: StreamState) -> Writing {
        if let error = writeRefusal(stream) { return .failed(error) }
        if !bytes.isEmpty {
            stream.outbound.append(bytes)
            enqueue(stream)
        }
        return stream.outbound.unsent <= streamBacklog ? .accepted : .mustWait
    }

    private func writeRefusal(_ stream: StreamState) -> StreamError? {
        if let code = stream.stopCode { return .reset(code) }
        if let verdict { return .socketClosed(verdict) }
        if stream.outbound.isFinishing { return .finished }
        return stream.isSendingOver ? .reset(0) : nil
    }

    func finish(_ stream: StreamState) -> Writing {
        if stream.outbound.isFinishing, stream.stopCode == nil { return .accepted }
        if let error = writeRefusal(stream) { return .failed(error) }
        stream.outbound.isFinishing = true
        enqueue(stream)
        return .accepted
    }

    /// Aborts both directions of a stream, but for what is done already.
    func abort(_ stream: StreamState, code: UInt64) {
        let code = min(code, Varint.max)
        let isSent = stream.outbound.isFinishSent && stream.outbound.isAcknowledged
        if !stream.isClosed {
            if stream.inbound.isEnded, !isSent {
                library.shutDown(stream.id, code: code)
            } else if !stream.inbound.isEnded {
                library.shutDown(stream.id, code: code)
            }
        }
        if !stream.inbound.isEnded || !stream.inbound.isEmpty {
            if stream.resetCode == nil { stream.resetCode = code }
            stream.isReceivingOver = true
            dropInbound(stream)
            stream.inbound.isEnded = false
        }
        if stream.stopCode == nil { stream.stopCode = code }
        stream.isSendingOver = true
        stream.wake()
        wantToSend()
    }

    /// Nobody holds the stream any more: what is finished still arrives, what is not is reset.
    func release(_ stream: StreamState) {
        stream.isReleased = true
        stream.isTaken = true
        if !stream.isClosed {
            if !stream.outbound.isFinishing {
                abort(stream, code: 0)
            } else if !stream.inbound.isEnded {
                library.stopReading(stream.id, code: 0)
                wantToSend()
            }
        }
        dropInbound(stream)
        giveBackPlace(of: stream)
    }
}
