internal import CRig
internal import Glibc

/// A socket that a test drives by hand, byte by byte, from inside a namespace.
///
/// The calls without `async` block, for threads of a test's own (see `blocking`); each gives up at its limit.
package final class RawSocket: Sendable {
    package enum Kind: Sendable {
        case udp
        case tcp

        fileprivate var number: Int32 {
            switch self {
            case .udp: RIG_UDP
            case .tcp: RIG_TCP
            }
        }
    }

    /// What a call met; `errno` says why.
    package struct Failure: Error, CustomStringConvertible {
        package let errno: Int32
        let doing: String

        package var description: String { "\(doing): \(String(cString: strerror(errno)))" }
        package var isTimeout: Bool { errno == ETIMEDOUT }
    }

    package struct Datagram: Sendable {
        package let bytes: [UInt8]
        package let address: String
        package let port: UInt16
        /// When it came, by `monotonicNanoseconds`, as the kernel saw it; a busy test process does not change that.
        package let arrived: UInt64
    }

    package let port: UInt16
    private let descriptor: Int32
    // Closed once: by `close()`, `reset()`, or at the end.
    private let isOpen = Watched(true)

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
        port = rig_local_port(descriptor)
    }

    deinit { close() }

    static func bind(_ kind: Kind, _ address: String, _ port: UInt16, path: String?) throws -> RawSocket {
        RawSocket(try check(rig_open_bound(path, kind.number, address, port), "binding \(address) port \(port)"))
    }

    static func connect(
        _ kind: Kind, _ address: String, _ port: UInt16, path: String?, within limit: Duration
    ) throws -> RawSocket {
        let result = rig_open_connected(path, kind.number, address, port, limit.wholeMilliseconds)
        return RawSocket(try check(result, "connecting to \(address) port \(port)"))
    }

    // MARK: - Blocking

    package func accept(within limit: Duration = .seconds(5)) throws -> RawSocket {
        RawSocket(try Self.check(rig_accept(descriptor, limit.wholeMilliseconds), "accepting at port \(port)"))
    }

    /// Sends all bytes, or one datagram, to `to` where the socket is not connected.
    package func send(
        _ bytes: some Sequence<UInt8>, to: (address: String, port: UInt16)? = nil, within limit: Duration = .seconds(5)
    ) throws {
        let bytes = Array(bytes)
        let result = rig_send(
            descriptor, bytes, bytes.count, limit.wholeMilliseconds, to?.address, to?.port ?? 0)
        _ = try Self.check(result, "sending \(bytes.count) bytes")
    }

    /// What has come, at most 64 KiB; empty at the end of a TCP stream.
    package func receive(within limit: Duration = .seconds(5)) throws -> [UInt8] {
        try receiveDatagram(within: limit).bytes
    }

    package func receiveDatagram(within limit: Duration = .seconds(5)) throws -> Datagram {
        var origin = rig_origin()
        var failure: Int64 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            let result = rig_receive(
                descriptor, buffer.baseAddress, buffer.count, limit.wholeMilliseconds, &origin)
            failure = min(result, 0)
            count = Int(max(result, 0))
        }
        _ = try Self.check(failure, "receiving at port \(port)")
        let address = withUnsafeBytes(of: origin.address) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return Datagram(bytes: bytes, address: address, port: origin.port, arrived: origin.arrived)
    }

    /// Exactly `count` bytes of a TCP stream.
    package func receive(exactly count: Int, within limit: Duration = .seconds(5)) throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            var chunk = [UInt8](repeating: 0, count: count - all.count)
            let result = rig_receive(descriptor, &chunk, chunk.count, limit.wholeMilliseconds, nil)
            let got = Int(try Self.check(result, "receiving at port \(port)"))
            guard got > 0 else { throw RigFailure("the stream ended after \(all.count) of \(count) bytes") }
            all += chunk[..<got]
        }
        return all
    }

    /// Ends this end's direction of a TCP stream.
    package func finish() throws { _ = try Self.check(rig_finish(descriptor), "finishing") }

    /// Asks for kernel buffers that hold `bytes`.
    package func growBuffers(to bytes: Int32) throws {
        _ = try Self.check(rig_grow_buffers(descriptor, bytes), "growing buffers")
    }

    package func close() { close(resets: false) }
    /// Ends a TCP connection with a reset.
    package func reset() { close(resets: true) }

    // MARK: - From tasks

    /// Sends and waits for the answer of the same length, as an echo gives it.
    package func echo(_ bytes: [UInt8], within limit: Duration = .seconds(5)) async throws -> [UInt8] {
        try await blocking {
            try self.send(bytes, within: limit)
            return try self.receive(exactly: bytes.count, within: limit)
        }
    }

    private func close(resets: Bool) {
        isOpen.change { isOpen in
            if isOpen { rig_close(descriptor, resets ? 1 : 0) }
            isOpen = false
        }
    }

    private static func check<Number: FixedWidthInteger & SignedInteger>(
        _ result: Number, _ doing: String
    ) throws -> Number {
        guard result >= 0 else { throw Failure(errno: Int32(-result), doing: doing) }
        return result
    }
}

/// The clock of `RawSocket.Datagram.arrived`.
package func monotonicNanoseconds() -> UInt64 { rig_now() }
