internal import CLinux
internal import Glibc
package import TransportKit

/// A UDP socket, confined to its loop.
///
/// It receives many datagrams in one system call and splits what the kernel joined (GRO); it sends many equal ones in
/// one call where the kernel can (GSO). Datagrams are never fragmented. It lives until ``close()``, which must be called.
///
/// Sendable is sound: it may be handed about, but every call traps unless it is made on the loop.
package final class UDPSocket: @unchecked Sendable {
    /// Who is told what happens. Kept until ``close()``: a weak reference would make every use of the handler slower.
    package var handler: (any UDPSocketHandler)? {
        didSet { loop.assertCurrent() }
    }
    /// The address the socket is bound to.
    package let localAddress: SocketAddress
    /// The peer of a connected socket.
    package let remoteAddress: SocketAddress?

    private let loop: EventLoop
    private let log: Log
    /// The descriptor, for options that only some sockets need. It belongs to the socket.
    package let descriptor: Int32
    private let isIPv6: Bool
    private var registration: Registration?
    private var isClosed = false
    /// Whether the kernel takes several datagrams in one call. It says no only when asked (B33).
    package private(set) var canSegment = true

    /// How much the kernel is asked to hold for a socket while the loop is busy.
    private static let bufferBytes: Int32 = 4 << 20
    /// The kernel's bounds for one segmented send.
    private static let segmentLimit = 64
    private static let sendLimit = 65_000

    /// Opens a socket that receives from anybody. On the loop only.
    ///
    /// - Parameters:
    ///   - local: where to bind; port 0 lets the system choose. `[::]` serves IPv4 too, unless `v6Only`.
    ///   - reusePort: whether several sockets share the port (SO_REUSEPORT).
    package static func bind(
        _ local: SocketAddress, loop: EventLoop, reusePort: Bool = false, v6Only: Bool = false, log: Log = Log()
    ) throws(TransportError) -> UDPSocket {
        let descriptor = tk_udp_bind(local.linux, reusePort ? 1 : 0, v6Only || !local.isAny ? 1 : 0)
        guard descriptor >= 0 else { throw TransportError(errno: -descriptor, doing: "binding UDP \(local)") }
        return try UDPSocket(descriptor, family: local, remote: nil, loop: loop, log: log)
    }

    /// Opens a socket for one peer, whose refusals it hears of. On the loop only.
    package static func connect(
        to remote: SocketAddress, loop: EventLoop, log: Log = Log()
    ) throws(TransportError) -> UDPSocket {
        let descriptor = tk_udp_connect(remote.linux)
        guard descriptor >= 0 else { throw TransportError(errno: -descriptor, doing: "sending UDP to \(remote)") }
        return try UDPSocket(descriptor, family: remote, remote: remote, loop: loop, log: log)
    }

    private init(
        _ descriptor: Int32, family: SocketAddress, remote: SocketAddress?, loop: EventLoop, log: Log
    ) throws(TransportError) {
        self.descriptor = descriptor
        self.loop = loop
        self.log = log
        isIPv6 = family.isIPv6
        localAddress = SocketAddress(tk_local_address(descriptor)) ?? family
        remoteAddress = remote
        // From here on `deinit` closes the descriptor.
        registration = try loop.register(descriptor, interest: .readable, self)
        let received = tk_grow_receive_buffer(descriptor, Self.bufferBytes)
        BufferAdvice.note(received: received, wanted: Self.bufferBytes, log: log)
        _ = tk_grow_send_buffer(descriptor, Self.bufferBytes)
    }

    deinit {
        if !isClosed { tk_close(descriptor) }
    }

    /// Closes the socket; nothing is called any more. A second call does nothing. On the loop only.
    package func close() {
        loop.assertCurrent()
        guard !isClosed else { return }
        isClosed = true
        handler = nil
        registration?.cancel()
        tk_close(descriptor)
    }

    // MARK: - Sending

    /// Sends one datagram, or several of `segmentBytes` each, of which the last may be shorter. On the loop only.
    ///
    /// - Parameters:
    ///   - remote: where to; nil on a connected socket.
    ///   - local: the address to send from; nil lets the system choose. Its port does not count.
    ///   - ecn: the two ECN bits.
    package func send(
        _ bytes: UnsafeRawBufferPointer, segmentBytes: Int, to remote: SocketAddress? = nil,
        from local: SocketAddress? = nil, ecn: UInt8 = 0
    ) -> UDPSendResult {
        loop.assertCurrent()
        precondition(segmentBytes > 0, "a segment has at least one byte")
        guard !isClosed else { return .failed(TransportError(.misuse, "the UDP socket is closed")) }
        // An address that is no address of the machine, such as a wildcard, leaves the choice to the system.
        let from = local.flatMap { $0.isAny ? nil : $0.linux } ?? tk_address()
        let to = remote?.linux ?? tk_address()
        var sent = 0
        repeat {
            let left = bytes.count - sent
            let most = canSegment ? max(min(Self.segmentLimit, Self.sendLimit / segmentBytes), 1) : 1
            let count = min(left, most * segmentBytes)
            let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[sent..<sent + count])
            let isSegmented = count > segmentBytes
            let result = unsafe transmit(part, segment: isSegmented ? segmentBytes : 0, to, from, ecn)
            switch -result {
            case ...0:
                break
            case EAGAIN:
                registration?.watch([.readable, .writable])
                return .blocked(sentBytes: sent)
            case EIO where isSegmented, EINVAL where isSegmented, EMSGSIZE where isSegmented:
                switch unsafe sendFirstAlone(of: part, segmentBytes, to, from, ecn, refusal: -result) {
                case .sent:
                    sent += segmentBytes
                    continue
                case .blocked: return .blocked(sentBytes: sent)
                case .failed(let error): return .failed(error)
                }
            case EMSGSIZE, ENOBUFS:
                // Too big for the interface, or the device's queue was full: to the peer it is a lost datagram.
                break
            default:
                return .failed(error(-result, to: remote))
            }
            sent += count
        } while sent < bytes.count
        return .sent
    }

    private func transmit(
        _ bytes: UnsafeRawBufferPointer, segment: Int, _ to: tk_address, _ from: tk_address, _ ecn: UInt8
    ) -> Int32 {
        let result = unsafe tk_udp_send(
            descriptor, isIPv6 ? 1 : 0, bytes.baseAddress, bytes.count, UInt16(segment), to, from, ecn)
        switch -result {
        case ECONNREFUSED where remoteAddress == nil, EHOSTUNREACH where remoteAddress == nil:
            // Left over from an earlier datagram to somebody else, so it says nothing about this one.
            return unsafe tk_udp_send(
                descriptor, isIPv6 ? 1 : 0, bytes.baseAddress, bytes.count, UInt16(segment), to, from, ecn)
        default:
            return result
        }
    }

    /// A segmented send was refused. What a lone datagram does tells whether segmenting is what was refused.
    private func sendFirstAlone(
        of bytes: UnsafeRawBufferPointer, _ segmentBytes: Int, _ to: tk_address, _ from: tk_address, _ ecn: UInt8,
        refusal: Int32
    ) -> UDPSendResult {
        let first = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<segmentBytes])
        let result = unsafe transmit(first, segment: 0, to, from, ecn)
        switch -result {
        case ...0:
            canSegment = false
            let reason = TransportError(errno: refusal, doing: "segmented UDP send (GSO) switched off")
            log.info("\(reason); sending one datagram a call")
            return .sent
        case EAGAIN:
            registration?.watch([.readable, .writable])
            return .blocked(sentBytes: 0)
        case EMSGSIZE, ENOBUFS:
            return .sent
        default:
            return .failed(error(-result, to: SocketAddress(to)))
        }
    }

    private func error(_ number: Int32, to remote: SocketAddress?) -> TransportError {
        let peer = (remote ?? remoteAddress).map { " to \($0)" } ?? ""
        return TransportError(errno: number, doing: "sending UDP\(peer)")
    }

    // MARK: - Receiving

    private func receiveWaiting() {
        // After so many rounds the loop's other descriptors get their turn; epoll will call again.
        for _ in 0..<4 {
            let receiver = loop.receiver
            let count = receiver.receive(from: descriptor)
            guard count > 0 else {
                // Errors of a connected socket arrive here too; the error queue has them in more detail.
                if count < 0, -count != EAGAIN, remoteAddress != nil { report(-count) }
                return
            }
            guard let handler else { return }
            for index in 0..<count {
                unsafe deliver(receiver.datagram(index), to: handler)
                if isClosed { return }
            }
            handler.receivedAll()
            if isClosed || count < receiver.capacity { return }
        }
    }

    private func deliver(_ datagram: tk_datagram, to handler: any UDPSocketHandler) {
        // A truncated one is longer than any segment may be, and its rest is gone.
        guard unsafe datagram.truncated == 0, let remote = unsafe SocketAddress(datagram.from) ?? remoteAddress else {
            return
        }
        var local = unsafe SocketAddress(datagram.local) ?? localAddress
        local.port = localAddress.port
        let bytes = unsafe UnsafeRawBufferPointer(start: datagram.bytes, count: Int(datagram.count))
        let segment = unsafe datagram.segment > 0 ? Int(datagram.segment) : bytes.count
        var start = 0
        repeat {
            let end = min(start + segment, bytes.count)
            let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            unsafe handler.received(part, from: remote, to: local, ecn: datagram.ecn)
            start = end
        } while start < bytes.count && !isClosed
    }

    private func takeErrors() {
        while true {
            let number = tk_next_queued_error(descriptor)
            if number < 0 { break }
            if number > 0 { report(number) }
            if isClosed { return }
        }
        let number = tk_take_socket_error(descriptor)
        if number != 0, number != EMSGSIZE, remoteAddress != nil { report(number) }
    }

    private func report(_ number: Int32) {
        guard number != EMSGSIZE else { return }
        handler?.failed(error(number, to: nil))
    }
}

extension UDPSocket: DescriptorHandler {
    package func ready(_ readiness: Readiness) {
        if readiness.contains(.failed) {
            takeErrors()
            if isClosed { return }
        }
        if readiness.contains(.readable) {
            receiveWaiting()
            if isClosed { return }
        }
        if readiness.contains(.writable) {
            registration?.watch(.readable)
            handler?.writable()
        }
    }

    /// Its owners keep timers, by which they hear of it.
    package func loopStopped() {}
}
