@preconcurrency internal import Glibc

/// The plainest programs over the system's own sockets: what every other figure is compared with.
enum RawSockets {
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ what: String) {
            description = "\(what): \(String(cString: strerror(errno)))"
        }
    }

    static let commands = [
        Command(name: "raw-echo", usage: "udp|tcp PORT", run: { arguments in try echo(&arguments) }),
        Command(
            name: "raw-ping", usage: "udp|tcp PORT [--size 64] [--seconds 2]",
            run: { arguments in try ping(&arguments) }),
        Command(name: "raw-source", usage: "PORT", run: { arguments in try source(&arguments) }),
        Command(name: "raw-get", usage: "PORT [--bytes 400000000]", run: { arguments in try get(&arguments) }),
        Command(name: "raw-connect", usage: "PORT [--count 500]", run: { arguments in try connectAndRead(&arguments) }),
    ]

    // MARK: - Servers

    /// Sends back what arrives, one peer after the other.
    private static func echo(_ arguments: inout Arguments) throws {
        let isTCP = try kind(&arguments)
        let port = try arguments.number("port")
        let listener = try bound(port: port, isTCP: isTCP)
        Bench.ready()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while isTCP {
            let peer = accept(listener, nil, nil)
            guard peer >= 0 else { throw Failure("accept") }
            setNoDelay(peer)
            while true {
                let count = recv(peer, &buffer, buffer.count, 0)
                guard count > 0, sendAll(peer, buffer, count) else { break }
            }
            close(peer)
        }
        while true {
            var peer = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutablePointer(to: &peer) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(listener, &buffer, buffer.count, 0, $0, &length)
                }
            }
            guard count >= 0 else { throw Failure("recvfrom") }
            _ = withUnsafePointer(to: &peer) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(listener, buffer, count, 0, $0, length)
                }
            }
        }
    }

    /// Answers eight bytes, a count, with that many bytes; several connections at a time.
    private static func source(_ arguments: inout Arguments) throws {
        let listener = try bound(port: arguments.number("port"), isTCP: true)
        Bench.ready()
        while true {
            let peer = accept(listener, nil, nil)
            guard peer >= 0 else { throw Failure("accept") }
            setNoDelay(peer)
            // It blocks a thread of the pool, which a server of two or three connections may.
            Task.detached { feed(peer) }
        }
    }

    private static func feed(_ peer: Int32) {
        defer { close(peer) }
        let block = [UInt8](repeating: 7, count: 1 << 18)
        var request = [UInt8](repeating: 0, count: 8)
        while receiveAll(peer, &request) {
            var left = request.reduce(0) { $0 << 8 | Int($1) }
            while left > 0 {
                let step = min(left, block.count)
                guard sendAll(peer, block, step) else { return }
                left -= step
            }
        }
    }

    // MARK: - Measurements

    private static func ping(_ arguments: inout Arguments) throws {
        let isTCP = try kind(&arguments)
        let size = try arguments.flag("size", default: 64)
        let duration = try arguments.flag("seconds", default: 2)
        let peer = try connected(port: arguments.number("port"), isTCP: isTCP)
        defer { close(peer) }
        var buffer = [UInt8](repeating: 7, count: size)
        var samples = Samples()
        let end = seconds() + Double(duration)
        var start = seconds()
        while start < end {
            guard sendAll(peer, buffer, size), receiveAll(peer, &buffer) else { throw Failure("ping") }
            samples.add(since: start)
            start = seconds()
        }
        Bench.report(samples.percentile(0.5), unit: "µs", [("p99", samples.percentile(0.99))])
    }

    private static func get(_ arguments: inout Arguments) throws {
        let bytes = try arguments.flag("bytes", default: 400_000_000)
        let peer = try connected(port: arguments.number("port"), isTCP: true)
        defer { close(peer) }
        let start = seconds()
        try request(bytes, from: peer)
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var left = bytes
        while left > 0 {
            let count = recv(peer, &buffer, min(left, buffer.count), 0)
            guard count > 0 else { throw Failure("the source ended with \(left) bytes to go") }
            left -= count
        }
        Bench.report(Double(bytes) / (seconds() - start) / 1e6, unit: "MB/s")
    }

    private static func connectAndRead(_ arguments: inout Arguments) throws {
        let count = try arguments.flag("count", default: 500)
        let port = try arguments.number("port")
        var samples = Samples()
        var byte: [UInt8] = [0]
        for _ in 0..<count {
            let start = seconds()
            let peer = try connected(port: port, isTCP: true)
            try request(1, from: peer)
            guard receiveAll(peer, &byte) else { throw Failure("no byte came back") }
            samples.add(since: start)
            close(peer)
        }
        Bench.report(samples.percentile(0.5), unit: "µs", [("p99", samples.percentile(0.99))])
    }

    // MARK: - System calls

    private static func kind(_ arguments: inout Arguments) throws -> Bool {
        switch try arguments.required("udp or tcp") {
        case "tcp": true
        case "udp": false
        default: throw Arguments.Invalid(description: "udp and tcp are allowed")
        }
    }

    private static func request(_ bytes: Int, from peer: Int32) throws {
        let header = (0..<8).map { UInt8(truncatingIfNeeded: bytes >> ((7 - $0) * 8)) }
        guard sendAll(peer, header, header.count) else { throw Failure("send") }
    }

    private static func made(isTCP: Bool) throws -> Int32 {
        let kind = isTCP ? SOCK_STREAM : SOCK_DGRAM
        let descriptor = socket(AF_INET, Int32(kind.rawValue), 0)
        guard descriptor >= 0 else { throw Failure("socket") }
        return descriptor
    }

    private static func withLoopback<Result>(
        port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func bound(port: Int, isTCP: Bool) throws -> Int32 {
        let descriptor = try made(isTCP: isTCP)
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, 4)
        guard withLoopback(port: port, { bind(descriptor, $0, $1) }) == 0 else { throw Failure("bind \(port)") }
        guard !isTCP || listen(descriptor, 128) == 0 else { throw Failure("listen") }
        return descriptor
    }

    private static func connected(port: Int, isTCP: Bool) throws -> Int32 {
        let descriptor = try made(isTCP: isTCP)
        guard withLoopback(port: port, { connect(descriptor, $0, $1) }) == 0 else { throw Failure("connect \(port)") }
        if isTCP { setNoDelay(descriptor) }
        return descriptor
    }

    private static func setNoDelay(_ descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
    }

    private static func sendAll(_ descriptor: Int32, _ bytes: [UInt8], _ count: Int) -> Bool {
        bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < count {
                let step = send(descriptor, buffer.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
                guard step > 0 else { return false }
                sent += step
            }
            return true
        }
    }

    private static func receiveAll(_ descriptor: Int32, _ bytes: inout [UInt8]) -> Bool {
        var got = 0
        while got < bytes.count {
            let step = bytes.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress! + got, $0.count - got, 0) }
            guard step > 0 else { return false }
            got += step
        }
        return true
    }
}
