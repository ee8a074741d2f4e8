@preconcurrency internal import Glibc
internal import TransportKit

/// What is measured over our own sockets.
enum WireClients {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static let dial = "URL [--trust FILE] [--transport quic|websocket|websocket-plain]"
    static let commands = [
        Command(
            name: "ping", usage: "\(dial) [--size 64] [--seconds 2]", run: { arguments in try await ping(&arguments) }),
        Command(
            name: "load", usage: "\(dial) [--size 64] [--in-flight 64] [--seconds 2]",
            run: { arguments in try await load(&arguments) }),
        Command(name: "bulk", usage: "\(dial) [--bytes 400000000]", run: { arguments in try await bulk(&arguments) }),
        Command(
            name: "idle", usage: "\(dial) --server PID [--count 1000]", run: { arguments in try await idle(&arguments) }
        ),
    ]

    private static func ping(_ arguments: inout Arguments) async throws {
        let message = Message(Bytes(repeating: 7, count: try arguments.flag("size", default: 64)))
        let duration = Double(try arguments.flag("seconds", default: 2))
        let wires = try Wires()
        let connect = try wires.dialer(&arguments)
        let samples = try await wires.onLoop {
            let socket = try await connect()
            var samples = Samples()
            let end = seconds() + duration
            var start = seconds()
            while start < end {
                try await socket.send(message)
                _ = try await socket.receive()
                samples.add(since: start)
                start = seconds()
            }
            await socket.close()
            return samples
        }
        Bench.report(samples.percentile(0.5), unit: "µs", [("p99", samples.percentile(0.99))])
    }

    private static func load(_ arguments: inout Arguments) async throws {
        let size = try arguments.flag("size", default: 64)
        let window = try arguments.flag("in-flight", default: 64)
        let duration = Double(try arguments.flag("seconds", default: 2))
        let wires = try Wires()
        let connect = try wires.dialer(&arguments)
        let (count, elapsed) = try await wires.onLoop {
            let socket = try await connect()
            let message = Message(Bytes(repeating: 7, count: size))
            let start = seconds()
            var count = 0
            try await socket.send(Array(repeating: message, count: window))
            while seconds() - start < duration {
                let answers = try await socket.receive()
                count += answers.count
                try await socket.send(Array(repeating: message, count: answers.count))
            }
            let elapsed = seconds() - start
            await socket.close()
            return (count, elapsed)
        }
        Bench.report(
            Double(count) / elapsed, unit: "messages/s", [("MB/s", Double(count * size) / elapsed / 1e6)])
    }

    private static func bulk(_ arguments: inout Arguments) async throws {
        let bytes = try arguments.flag("bytes", default: 400_000_000)
        let wires = try Wires()
        let connect = try wires.dialer(&arguments)
        let rate = try await wires.onLoop {
            let socket = try await connect()
            let stream = try await socket.openStream()
            let start = seconds()
            try await stream.write(Bytes((0..<8).map { UInt8(truncatingIfNeeded: bytes >> ((7 - $0) * 8)) }))
            var left = bytes
            while left > 0 {
                guard let part = try await stream.read(upTo: 1 << 18) else {
                    throw Failure(description: "the source ended with \(left) bytes to go")
                }
                left -= part.count
            }
            let rate = Double(bytes) / (seconds() - start) / 1e6
            await socket.close()
            return rate
        }
        Bench.report(rate, unit: "MB/s")
    }

    /// How much the resident memory of the process `--server` grows by one idle connection, in KiB.
    private static func idle(_ arguments: inout Arguments) async throws {
        let count = try arguments.flag("count", default: 1000)
        let server = try arguments.flag("server", default: 0)
        let wires = try Wires()
        let connect = try wires.dialer(&arguments)
        let perConnection = try await wires.onLoop {
            // The first ones pay for what all share.
            var open = [try await connect(), try await connect()]
            let before = try residentKibibytes(of: server)
            for _ in 0..<count { open.append(try await connect()) }
            try await wires.loop.sleep(for: .seconds(2))
            let after = try residentKibibytes(of: server)
            for socket in open { await socket.close() }
            return Double(after - before) / Double(count)
        }
        Bench.report(perConnection, unit: "KiB")
    }

    private static func residentKibibytes(of process: Int) throws -> Int {
        guard let file = fopen("/proc/\(process)/status", "r") else {
            throw Failure(description: "there is no process \(process)")
        }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard text.hasPrefix("VmRSS:") else { continue }
            let digits = text.filter { ("0"..."9").contains($0) }
            if let number = Int(digits) { return number }
        }
        throw Failure(description: "process \(process) does not say how much memory it has")
    }
}
