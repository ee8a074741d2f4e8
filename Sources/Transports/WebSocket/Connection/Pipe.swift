internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// Whoever works with the bytes of a pipe. All calls come on its loop.
protocol PipeOwner: AnyObject {
    /// TCP is connected; only on a pipe that dialled.
    func pipeConnected()
    /// TLS is done.
    func pipeSecured()
    /// Bytes have arrived; the memory is good until the call returns.
    func pipeReceived(_ bytes: UnsafeRawBufferPointer)
    /// Some of the output has gone to the kernel.
    func pipeFlushed()
    /// The peer will send nothing more.
    func pipeEnded()
    /// Nothing more can be read, or be written.
    func pipeFailed(_ error: TransportError, while: Pipe.Activity)
}

/// The bytes of one connection: TCP, and TLS over it where there is one.
///
/// Output is gathered and goes out at the end of the loop's turn, in as few calls as the kernel allows. Input is read into
/// a buffer of the loop's, until the owner asks for a pause.
///
/// Pipe and owner hold each other until ``close()``. Sendable is sound: the pipe is confined to its loop, and the TCP
/// socket under it checks that on every call.
@safe final class Pipe: TurnEndHandler, @unchecked Sendable {
    /// What could not go on.
    enum Activity {
        case connecting
        case securing
        case reading
        case writing
    }

    private enum Security {
        case plain
        case handshaking(TLSStream)
        case secured(TLSStream)
    }

    /// How much plaintext is encrypted ahead of the kernel.
    private static let encryptAhead = 128 << 10
    /// How many times one pipe reads before the others of the loop get their turn.
    private static let readsPerTurn = 4

    let loop: EventLoop
    var owner: (any PipeOwner)?
    let room: LoopRoom
    private var socket: TCPSocket?
    private var security = Security.plain

    private var output: OutputQueue
    private var ciphertext = Bytes()
    private var willFlush = false
    private var wantsFinish = false
    private var hasFinished = false
    private var writeFailure: TransportError?

    private var isReading = false
    private var inputHasEnded = false
    /// While it is set nothing is read, so the kernel slows the peer down.
    private(set) var isPaused = false

    /// Takes over a socket that was accepted; ``startTLS(_:)`` or nothing comes next.
    init(accepted socket: TCPSocket, room: LoopRoom) {
        loop = socket.loop
        self.room = room
        output = OutputQueue(room: room)
        self.socket = socket
        socket.handler = self
    }

    /// Starts to connect; the owner is told how it went.
    init(connectingTo address: SocketAddress, loop: EventLoop, room: LoopRoom) throws(TransportError) {
        self.loop = loop
        self.room = room
        output = OutputQueue(room: room)
        socket = try TCPSocket.connect(to: address, loop: loop, handler: self)
    }

    var localAddress: SocketAddress? { socket?.localAddress }
    var remoteAddress: SocketAddress? { socket?.remoteAddress }
    var isOpen: Bool { socket != nil }

    /// The TLS session, where there is one.
    var tls: TLSSession? {
        switch security {
        case .plain: nil
        case .handshaking(let stream), .secured(let stream): stream.session
        }
    }

    // MARK: - TLS

    /// Puts TLS on the connection.
    func startTLS(_ session: TLSSession) {
        security = .handshaking(TLSStream(session))
        // The client speaks first; a server waits for input.
        switch session.role {
        case .client: advanceHandshake()
        case .server: break
        }
    }

    /// - Returns: whether TLS is done.
    @discardableResult
    private func advanceHandshake() -> Bool {
        guard case .handshaking(let stream) = security else { return true }
        do {
            let progress = try stream.advanceHandshake()
            sendCiphertext(of: stream)
            guard progress == .done else { return false }
            security = .secured(stream)
            owner?.pipeSecured()
            return true
        } catch {
            // The alert goes out first.
            sendCiphertext(of: stream)
            inputHasEnded = true
            owner?.pipeFailed(error, while: .securing)
            return false
        }
    }

    // MARK: - Writing

    /// How many bytes wait for the kernel.
    var buffered: Int { output.count + ciphertext.count }

    /// Lets `body` add bytes to the output, which goes out at the end of the turn.
    func write(_ body: (inout Bytes) -> Void) {
        guard socket != nil, writeFailure == nil, !wantsFinish else { return }
        output.write(body)
        scheduleFlush()
    }

    /// Ends this end's direction once everything has been written; reading goes on.
    func finish() {
        guard !wantsFinish else { return }
        wantsFinish = true
        scheduleFlush()
    }

    private func scheduleFlush() {
        guard !willFlush else { return }
        willFlush = true
        loop.atEndOfTurn(self)
    }

    func turnEnds() {
        willFlush = false
        flush()
    }

    private func flush() {
        guard socket != nil, writeFailure == nil else { return }
        switch security {
        case .plain: sendOutput()
        case .handshaking: return
        case .secured(let stream): encryptAndSend(stream)
        }
        finishIfFlushed()
        owner?.pipeFlushed()
    }

    private func encryptAndSend(_ stream: TLSStream) {
        while writeFailure == nil {
            sendCiphertext()
            guard ciphertext.isEmpty, !output.isEmpty else { return }
            do throws(TransportError) {
                try output.take { piece throws(TransportError) in
                    let part = piece.prefix(Self.encryptAhead)
                    unsafe try part.withUnsafeBytes { bytes throws(TransportError) in unsafe try stream.write(bytes) }
                    piece.removeFirst(part.count)
                }
            } catch {
                return failWriting(error)
            }
            ciphertext = stream.takeOutput()
        }
    }

    /// Sends what TLS itself has to say.
    private func sendCiphertext(of stream: TLSStream) {
        guard stream.hasOutput else { return }
        ciphertext.append(contentsOf: stream.takeOutput())
        sendCiphertext()
    }

    private func sendOutput() {
        guard let socket else { return }
        var isTaken = true
        while isTaken, !output.isEmpty {
            let error = output.take { piece in
                let error = Self.send(&piece, over: socket)
                isTaken = piece.isEmpty
                return error
            }
            if let error { return failWriting(error) }
        }
    }

    private func sendCiphertext() {
        if let socket, let error = Self.send(&ciphertext, over: socket) { failWriting(error) }
    }

    /// Without `self`, so that a failure is dealt with once the buffer is no longer being changed.
    private static func send(_ bytes: inout Bytes, over socket: TCPSocket) -> TransportError? {
        guard !bytes.isEmpty else { return nil }
        switch unsafe bytes.withUnsafeBytes({ unsafe socket.write($0) }) {
        case .written(let count) where count == bytes.count: bytes.removeAll()
        case .written(let count): bytes.removeFirst(count)
        case .wouldBlock: break
        case .failed(let error): return error
        }
        return nil
    }

    private func failWriting(_ error: TransportError) {
        guard writeFailure == nil else { return }
        writeFailure = error
        output.removeAll()
        ciphertext = Bytes()
        owner?.pipeFailed(error, while: .writing)
    }

    private func finishIfFlushed() {
        guard wantsFinish, !hasFinished, output.isEmpty, ciphertext.isEmpty, writeFailure == nil else { return }
        hasFinished = true
        if case .secured(let stream) = security {
            stream.closeNotify()
            sendCiphertext(of: stream)
        }
        socket?.shutdownWrite()
    }

    /// Whether the end of this end's direction is on its way.
    var isFinished: Bool { hasFinished || writeFailure != nil }

    // MARK: - Reading

    /// Stops reading.
    func pause() {
        isPaused = true
    }

    /// Reads again.
    func resume() {
        guard isPaused else { return }
        isPaused = false
        read()
    }

    private func read() {
        guard !isReading else { return }
        isReading = true
        defer { isReading = false }
        for _ in 0..<Self.readsPerTurn {
            guard let socket, !isPaused, !inputHasEnded else { return }
            switch unsafe socket.read(into: room.input) {
            case .bytes(let count): unsafe take(UnsafeRawBufferPointer(rebasing: room.input[..<count]))
            case .wouldBlock: return
            case .end: endInput()
            case .failed(let error): failReading(error)
            }
        }
        loop.execute { self.read() }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        switch security {
        case .plain: unsafe owner?.pipeReceived(bytes)
        case .handshaking(let stream), .secured(let stream):
            unsafe stream.withInput(borrowing: bytes) { decrypt(stream) }
        }
    }

    private func decrypt(_ stream: TLSStream) {
        guard advanceHandshake() else { return }
        while socket != nil, !inputHasEnded {
            do throws(TransportError) {
                switch unsafe try stream.read(into: room.plaintext) {
                case .bytes(let count):
                    unsafe owner?.pipeReceived(UnsafeRawBufferPointer(rebasing: room.plaintext[..<count]))
                case .needsInput: return sendCiphertext(of: stream)
                case .end:
                    inputHasEnded = true
                    owner?.pipeEnded()
                }
            } catch {
                sendCiphertext(of: stream)
                failReading(error)
            }
        }
    }

    private func endInput() {
        switch security {
        case .plain:
            inputHasEnded = true
            owner?.pipeEnded()
        case .handshaking(let stream), .secured(let stream):
            // TLS says whether that was the end or a cut.
            stream.endInput()
            decrypt(stream)
            inputHasEnded = true
        }
    }

    private func failReading(_ error: TransportError) {
        guard !inputHasEnded else { return }
        inputHasEnded = true
        owner?.pipeFailed(error, while: .reading)
    }

    /// How the other direction stands.
    var transmission: Liveness.Transmission {
        let progress = socket?.progress
        return Liveness.Transmission(
            isAcknowledged: buffered == 0 && progress?.unacknowledgedBytes ?? 0 == 0,
            lastAcknowledgement: progress?.lastAcknowledgement, isReading: !isPaused)
    }

    // MARK: - Ending

    /// Closes the connection; the kernel still sends what it has. Nothing is called any more.
    func close() {
        guard let socket else { return }
        socket.close()
        self.socket = nil
        owner = nil
        security = .plain
        output.removeAll()
        ciphertext = Bytes()
    }
}

extension Pipe: TCPSocketHandler {
    func connected() {
        owner?.pipeConnected()
    }

    func readable() {
        read()
    }

    func writable() {
        flush()
    }

    func failed(_ error: TransportError) {
        owner?.pipeFailed(error, while: .connecting)
    }
}
