import Testing
import TransportIO
import TransportKit

/// Runs `body` on a loop of its own and stops the loop afterwards.
func withLoop(_ body: @escaping @Sendable (EventLoop) async throws -> Void) async throws {
    let loop = try EventLoop(name: "test")
    let result = await Task(executorPreference: loop) { try await body(loop) }.result
    await loop.shutdown()
    try result.get()
}

/// Keeps what a UDP socket hands over.
final class DatagramCollector: UDPSocketHandler {
    struct Datagram {
        let bytes: Bytes
        let remote: SocketAddress
        let local: SocketAddress
        let ecn: UInt8
    }

    private(set) var datagrams: [Datagram] = []
    private(set) var batches = 0
    private(set) var errors: [TransportError] = []
    var onDatagram: ((Datagram) -> Void)?
    private let changed = Signal()

    func received(
        _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8
    ) {
        let kept = Datagram(bytes: Bytes(copying: datagram), remote: remote, local: local, ecn: ecn)
        datagrams.append(kept)
        onDatagram?(kept)
    }

    func receivedAll() {
        batches += 1
        changed.signal()
    }

    func writable() {}

    func failed(_ error: TransportError) {
        errors.append(error)
        changed.signal()
    }

    func wait(until condition: (DatagramCollector) -> Bool) async {
        while !condition(self), await changed.wait() {}
    }
}

/// Keeps what a TCP socket says.
final class TCPCollector: TCPSocketHandler, TCPAcceptorHandler {
    private(set) var isConnected = false
    private(set) var readableCalls = 0
    private(set) var writableCalls = 0
    private(set) var errors: [TransportError] = []
    private(set) var accepted: [TCPSocket] = []
    /// Who answers for accepted sockets; nobody keeps one that has none.
    var acceptedHandler: TCPCollector?
    private let changed = Signal()

    func connected() {
        isConnected = true
        changed.signal()
    }

    func readable() {
        readableCalls += 1
        changed.signal()
    }

    func writable() {
        writableCalls += 1
        changed.signal()
    }

    func failed(_ error: TransportError) {
        errors.append(error)
        changed.signal()
    }

    func acceptorStopped() {}

    func accepted(_ socket: TCPSocket) {
        socket.handler = acceptedHandler
        accepted.append(socket)
        changed.signal()
    }

    func wait(until condition: (TCPCollector) -> Bool) async {
        while !condition(self), await changed.wait() {}
    }
}

extension UDPSocket {
    /// Sends one datagram.
    @discardableResult func send(
        _ bytes: Bytes, segmentBytes: Int? = nil, to remote: SocketAddress? = nil, from local: SocketAddress? = nil,
        ecn: UInt8 = 0
    ) -> UDPSendResult {
        bytes.withUnsafeBytes {
            send($0, segmentBytes: segmentBytes ?? max(bytes.count, 1), to: remote, from: local, ecn: ecn)
        }
    }
}

extension UDPSendResult {
    var isSent: Bool {
        if case .sent = self { true } else { false }
    }

    var error: TransportError? {
        if case .failed(let error) = self { error } else { nil }
    }
}
