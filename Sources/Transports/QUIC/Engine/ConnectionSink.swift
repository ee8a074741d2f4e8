internal import CNgtcp2
internal import TransportKit

/// All that the library's callbacks touch. The connection looks at it once the library has returned.
///
/// Confined, with its connection, to one loop.
@safe final class ConnectionSink {
    /// Something that arrived in a form of ours.
    struct Arrival {
        let item: FramedInput.Item
        let delivery: Delivery
        let stream: StreamState
    }

    /// The bytes of the control stream and of bulk streams are not looked at any more.
    private(set) var framingFailure: FramedInput.Failure?
    /// A stream of the peer's has an unknown kind.
    private(set) var unknownStreams: [StreamState] = []

    var streams: [Int64: StreamState] = [:]
    var opened: [StreamState] = []
    var closed: [StreamState] = []
    var touched: [StreamState] = []
    var arrivals: [Arrival] = []
    var datagrams: [Bytes] = []
    var datagramBytes = 0
    var issuedIDs: [ConnectionID] = []
    var retiredIDs: [ConnectionID] = []
    var isHandshakeCompleted = false
    var isHandshakeConfirmed = false
    var wasReset = false
    /// Paths that were tried, by the address they leave from, and whether an answer came.
    var triedPaths: [(local: SocketAddress, isSound: Bool)] = []
    var mayOpenStreams = false
    /// How many bytes of the application have come.
    var arrivedBytes = 0
    /// Bytes that go back to the peer at once, because nobody will read them.
    var surplus: [(id: Int64, count: Int)] = []

    private let isServer: Bool
    private let maxMessageBytes: Int
    private let datagramBudget: Int
    private var guardian: HandshakeGuard
    /// The stream that was looked up last: packets come in runs.
    private var recent: StreamState?
    /// Datagrams that found no room.
    var droppedDatagrams = 0

    init(isServer: Bool, limits: Limits) {
        self.isServer = isServer
        maxMessageBytes = limits.maxMessageBytes
        datagramBudget = limits.receiveBufferBytes
        guardian = HandshakeGuard(isServer: isServer)
    }

    /// Whether the service has asked for another ClientHello.
    var hasRetried: Bool { guardian.hasRetried }

    /// This end has offered early data, and takes no other ClientHello's request.
    func refuseRetry() { guardian.refusesRetry = true }

    func stream(_ id: Int64) -> StreamState? {
        if let recent, recent.id == id { return recent }
        let found = streams[id]
        recent = found
        return found
    }

    func forget(_ stream: StreamState) {
        if recent === stream { recent = nil }
        streams[stream.id] = nil
    }

    func takeUnknownStreams() -> [StreamState] {
        if unknownStreams.isEmpty { return [] }
        defer { unknownStreams = [] }
        return unknownStreams
    }

    func touch(_ stream: StreamState) {
        guard !stream.isTouched else { return }
        stream.isTouched = true
        touched.append(stream)
    }

    // MARK: - What the library says

    private func crypto(_ level: Int32, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard let level = HandshakeGuard.Level(rawValue: Int(level)),
            let alert = unsafe guardian.check(bytes, at: level)
        else { return 0 }
        return Int32(alert)
    }

    private func streamOpened(_ id: Int64) {
        let content: StreamState.Content
        switch (id & 2 != 0, id) {
        case (true, _): content = .framed(.unidirectional(messagesUpTo: maxMessageBytes), .bulk)
        case (false, 0): content = .framed(.target(thenMessagesUpTo: maxMessageBytes), .control)
        case (false, _): content = .raw(InboundBytes())
        }
        let stream = StreamState(id: id, isLocal: false, content: content)
        streams[id] = stream
        opened.append(stream)
    }

    private func streamData(_ id: Int64, _ isLast: Bool, _ bytes: UnsafeRawBufferPointer) {
        guard let stream = stream(id), !stream.isReceivingOver, framingFailure == nil else {
            surplus.append((id, bytes.count))
            return
        }
        arrivedBytes += bytes.count
        switch stream.content {
        case .raw:
            unsafe stream.inbound.append(bytes)
            if isLast { stream.inbound.isEnded = true }
        case .framed(var input, let delivery):
            // As in `StreamState.inbound`: one reference only, so that nothing is copied.
            stream.content = .none
            do throws(FramedInput.Failure) {
                unsafe try input.feed(bytes) { item in
                    arrivals.append(Arrival(item: item, delivery: delivery, stream: stream))
                }
                if input.looseBytes > 0, delivery == .bulk { surplusOfKind(stream, input) }
            } catch {
                fail(stream, error, bytes.count)
            }
            stream.content = .framed(input, delivery)
            if isLast { stream.isReceivingOver = true }
        case .none:
            surplus.append((id, bytes.count))
        }
        touch(stream)
    }

    private func surplusOfKind(_ stream: StreamState, _ input: FramedInput) {
        guard !stream.hasCountedKind else { return }
        stream.hasCountedKind = true
        surplus.append((stream.id, input.looseBytes))
    }

    private func fail(_ stream: StreamState, _ failure: FramedInput.Failure, _ count: Int) {
        switch failure {
        case .unknownKind:
            stream.isReceivingOver = true
            unknownStreams.append(stream)
            surplus.append((stream.id, count))
        case .tooLong, .badTarget:
            framingFailure = failure
        }
    }

    private func streamAcknowledged(_ id: Int64, _ end: UInt64) {
        guard let stream = stream(id) else { return }
        stream.outbound.acknowledged(upTo: end)
        touch(stream)
    }

    private func streamClosed(_ id: Int64, _ code: UInt64) {
        guard let stream = stream(id) else { return }
        stream.isClosed = true
        // The library does not report that the peer asked to stop; it obeys, and the stream closes with that code.
        if !stream.outbound.isFinishing {
            stream.isSendingOver = true
            if stream.stopCode == nil { stream.stopCode = code }
        }
        closed.append(stream)
    }

    private func streamReset(_ id: Int64, _ code: UInt64) {
        guard let stream = stream(id) else { return }
        if stream.resetCode == nil { stream.resetCode = code }
        stream.isReceivingOver = true
        // It may ask to stop, too: trying to send tells.
        stream.isBlocked = false
        touch(stream)
    }

    private func streamWindow(_ id: Int64) {
        guard let stream = stream(id) else { return }
        stream.isBlocked = false
        touch(stream)
    }

    private func datagram(_ bytes: UnsafeRawBufferPointer) {
        guard datagramBytes + bytes.count <= datagramBudget else {
            droppedDatagrams += 1
            return
        }
        arrivedBytes += bytes.count
        datagramBytes += bytes.count
        unsafe datagrams.append(Bytes(copying: bytes))
    }

    // MARK: - For C

    private static func from(_ pointer: UnsafeMutableRawPointer?) -> ConnectionSink? {
        // Unretained is sound: whoever made the `tk_quic` holds the sink until that is freed.
        unsafe pointer.map { unsafe Unmanaged<ConnectionSink>.fromOpaque($0).takeUnretainedValue() }
    }

    /// The functions that the library calls, each with the sink's own pointer.
    static var events: tk_quic_events {
        unsafe tk_quic_events(
            crypto: { sink, level, bytes, count in
                guard let sink = unsafe ConnectionSink.from(sink) else { return 0 }
                return unsafe sink.crypto(level, UnsafeRawBufferPointer(start: bytes, count: count))
            },
            handshake_completed: { sink in unsafe ConnectionSink.from(sink)?.isHandshakeCompleted = true },
            handshake_confirmed: { sink in unsafe ConnectionSink.from(sink)?.isHandshakeConfirmed = true },
            stream_opened: { sink, id in unsafe ConnectionSink.from(sink)?.streamOpened(id) },
            stream_data: { sink, id, isLast, bytes, count in
                unsafe ConnectionSink.from(sink)?.streamData(
                    id, isLast != 0, UnsafeRawBufferPointer(start: bytes, count: count))
            },
            stream_acknowledged: { sink, id, offset, count in
                unsafe ConnectionSink.from(sink)?.streamAcknowledged(id, offset &+ count)
            },
            stream_closed: { sink, id, code in unsafe ConnectionSink.from(sink)?.streamClosed(id, code) },
            stream_reset: { sink, id, code in unsafe ConnectionSink.from(sink)?.streamReset(id, code) },
            stream_window: { sink, id in unsafe ConnectionSink.from(sink)?.streamWindow(id) },
            streams_allowed: { sink, _ in unsafe ConnectionSink.from(sink)?.mayOpenStreams = true },
            datagram: { sink, bytes, count in
                unsafe ConnectionSink.from(sink)?.datagram(UnsafeRawBufferPointer(start: bytes, count: count))
            },
            id_issued: { sink, bytes, count in
                let id = unsafe ConnectionID(UnsafeRawBufferPointer(start: bytes, count: count))
                unsafe ConnectionSink.from(sink)?.issuedIDs.append(id)
            },
            id_retired: { sink, bytes, count in
                let id = unsafe ConnectionID(UnsafeRawBufferPointer(start: bytes, count: count))
                unsafe ConnectionSink.from(sink)?.retiredIDs.append(id)
            },
            stateless_reset: { sink in unsafe ConnectionSink.from(sink)?.wasReset = true },
            path_validated: { sink, local, isSound in
                guard let local = SocketAddress(local) else { return }
                unsafe ConnectionSink.from(sink)?.triedPaths.append((local, isSound != 0))
            })
    }
}
