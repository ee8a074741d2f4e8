@preconcurrency internal import Glibc
internal import QUICTransport
internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// QUIC as an application uses it, to stand beside the plainest programs and those of others.
enum QUICBench {
    static let commands = [
        Command(name: "quic-serve", usage: "PORT DIRECTORY", run: { arguments in try await serve(&arguments) }),
        Command(
            name: "quic-get", usage: "PORT DIRECTORY [--bytes 400000000]",
            run: { arguments in try await get(&arguments) }),
        Command(
            name: "quic-ping", usage: "PORT DIRECTORY [--size 64] [--seconds 2]",
            run: { arguments in try await ping(&arguments) }),
        Command(
            name: "quic-connect", usage: "PORT DIRECTORY [--count 300]",
            run: { arguments in try await connect(&arguments) }),
        Command(
            name: "quic-idle", usage: "PORT DIRECTORY SERVER-PID [--count 1000]",
            run: { arguments in try await idle(&arguments) }),
    ]

    private struct Rig {
        let loop: EventLoop
        let transport: QUICTransport
        let port: UInt16
        let files: CertificateFiles

        init(_ arguments: inout Arguments) throws {
            port = UInt16(clamping: try arguments.number("port"))
            let directory = try arguments.required("directory")
            files = try SelfSignedCertificate.makeIfMissing(names: ["127.0.0.1"], directory: directory)
            loop = try EventLoop(name: "quic")
            transport = QUICTransport(loop: loop)
        }

        func dial() async throws -> any Socket {
            var options = DialOptions()
            options.security = ClientSecurity(trust: .file(files.certificate))
            let endpoint = Endpoint(scheme: .wss, host: .ipv4(.loopback), port: port)
            return try await transport.dial(ServiceURL(endpoint), options: options)
        }

        /// Runs on the loop, where a call of the transport crosses no thread.
        func onLoop<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
            try await Task(executorPreference: loop) { try await body() }.value
        }
    }

    /// Echoes messages; answers eight bytes on a stream, a count, with that many bytes.
    private static func serve(_ arguments: inout Arguments) async throws {
        let rig = try Rig(&arguments)
        try await rig.onLoop {
            var options = ListenOptions()
            options.security = ServerSecurity(identity: rig.files)
            let endpoint = Endpoint(scheme: .wss, host: .ipv4(.loopback), port: rig.port)
            let listener = try await rig.transport.listen(endpoint, options: options)
            Bench.ready()
            while true {
                let socket = try await listener.accept()
                Task(executorPreference: rig.loop) {
                    while let messages = try? await socket.receive() { try? await socket.send(messages) }
                }
                Task(executorPreference: rig.loop) {
                    while let stream = try? await socket.acceptStream() {
                        Task(executorPreference: rig.loop) { try? await source(stream) }
                    }
                }
            }
        }
    }

    private static func source(_ stream: any TransportKit.Stream) async throws {
        var header = Bytes()
        while header.count < 8 {
            guard let part = try await stream.read(upTo: 8 - header.count) else { return }
            header.append(contentsOf: part)
        }
        var left = header.reduce(0) { $0 << 8 | Int($1) }
        let block = Bytes(repeating: 0x61, count: 1 << 16)
        while left > 0 {
            let part = block.prefix(left)
            try await stream.write(part)
            left -= part.count
        }
        try await stream.finish()
        while try await stream.read(upTo: 65_536) != nil {}
    }

    /// Megabytes per second of one stream.
    private static func get(_ arguments: inout Arguments) async throws {
        let bytes = try arguments.flag("bytes", default: 400_000_000)
        let rig = try Rig(&arguments)
        let seconds = try await rig.onLoop {
            let socket = try await rig.dial()
            let stream = try await socket.openStream()
            let start = rig.loop.now()
            try await stream.write(Bytes((0..<8).map { UInt8(truncatingIfNeeded: bytes >> ((7 - $0) * 8)) }))
            try await stream.finish()
            var received = 0
            while let part = try await stream.read(upTo: 1 << 18) { received += part.count }
            let seconds = (rig.loop.now() - start).inMilliseconds / 1000
            guard received == bytes else { throw RawSockets.Failure("only \(received) bytes came") }
            await socket.close()
            return seconds
        }
        Bench.report(Double(bytes) / seconds / 1_000_000, unit: "MB/s")
    }

    /// The median round trip of one message, in microseconds.
    private static func ping(_ arguments: inout Arguments) async throws {
        let size = try arguments.flag("size", default: 64)
        let limit = try arguments.flag("seconds", default: 2)
        let rig = try Rig(&arguments)
        let samples = try await rig.onLoop {
            let socket = try await rig.dial()
            let message = Message(Bytes(repeating: 7, count: size))
            let end = rig.loop.now() + .seconds(limit)
            var samples: [Double] = []
            var now = rig.loop.now()
            while now < end {
                try await socket.send(message)
                _ = try await socket.receive()
                let later = rig.loop.now()
                samples.append((later - now).inMilliseconds * 1000)
                now = later
            }
            await socket.close()
            return samples.sorted()
        }
        Bench.report(
            samples[samples.count / 2], unit: "us",
            [("p99", samples[samples.count * 99 / 100]), ("count", Double(samples.count))])
    }

    /// Connections opened and closed per second, one after the other.
    private static func connect(_ arguments: inout Arguments) async throws {
        let count = try arguments.flag("count", default: 300)
        let rig = try Rig(&arguments)
        let seconds = try await rig.onLoop {
            let start = rig.loop.now()
            for _ in 0..<count {
                let socket = try await rig.dial()
                try await socket.send(Message([1]))
                _ = try await socket.receive()
                await socket.close()
            }
            return (rig.loop.now() - start).inMilliseconds / 1000
        }
        Bench.report(Double(count) / seconds, unit: "connections/s")
    }

    /// Resident kilobytes of the server for each connection that only exists.
    private static func idle(_ arguments: inout Arguments) async throws {
        let count = try arguments.flag("count", default: 1000)
        let rig = try Rig(&arguments)
        let server = try arguments.number("the server's process id")
        let kilobytes = try await rig.onLoop {
            // What the first connections cost is paid once.
            var sockets: [any Socket] = []
            for _ in 0..<20 { sockets.append(try await rig.dial()) }
            try await rig.loop.sleep(for: .milliseconds(500))
            let before = try residentKilobytes(server)
            for _ in 0..<count { sockets.append(try await rig.dial()) }
            try await rig.loop.sleep(for: .seconds(2))
            let after = try residentKilobytes(server)
            for socket in sockets { await socket.close() }
            return Double(after - before) / Double(count)
        }
        Bench.report(kilobytes, unit: "KiB/connection")
    }

    private static func residentKilobytes(_ process: Int) throws -> Int {
        guard let file = fopen("/proc/\(process)/statm", "r") else { throw RawSockets.Failure("/proc/\(process)") }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        fgets(&line, Int32(line.count), file)
        let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).split(
            separator: " ")
        guard words.count > 1, let pages = Int(words[1]) else { throw RawSockets.Failure("/proc/\(process)/statm") }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE))) / 1024
    }
}
