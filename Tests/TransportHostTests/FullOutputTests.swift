import Foundation
import Glibc
import Testing
import TransportHost

/// Standard error and output that take nothing: a full pipe, as a held terminal is one (B26).
@Suite(.timeLimit(.minutes(2))) struct FullOutputTests {
    /// Makes a pipe that is full.
    func withFullPipe<Result>(
        _ body: (_ reading: Int32, _ writing: Int32) async throws -> Result
    ) async throws -> Result {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // The program shares the flag, and is to meet a pipe that blocks.
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        while write(ends[1], String(repeating: " ", count: 4096), 4096) > 0 {}
        _ = fcntl(ends[1], F_SETFL, 0)
        return try await body(ends[0], ends[1])
    }

    /// What is in a pipe now.
    func drain(_ reading: Int32) -> String {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        while case let count = read(reading, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    // About 1 s.
    @Test func `A standard error that takes nothing holds up neither the host nor its end`() async throws {
        try await withFullPipe { (reading: Int32, writing: Int32) async throws in
            let words = ["echo", "ws://127.0.0.1:0/echo"]
            try await Program.whileRunning(words, errors: writing, limit: .seconds(60)) {
                (echo: Program) async throws in
                let lines = try #require(try await echo.lines(until: "ready"))
                let url = try #require(lines.first { $0.hasPrefix("listening at ") }?.dropFirst(13))
                let ended = try await Program.run(["pipe", String(url)], input: "hello\n")
                #expect(ended.code == 0 && ended.output == "hello\n")
                echo.signal(SIGTERM)
                #expect(await echo.exitCode() == 0)
            }
            // What other processes do with the pipe is as it was.
            #expect(fcntl(writing, F_GETFL) & O_NONBLOCK == 0)
        }
    }

    @Test func `What standard error takes late is written before the end`() async throws {
        try await withFullPipe { (reading: Int32, writing: Int32) async throws in
            let words = ["echo", "ws://127.0.0.1:0/echo"]
            try await Program.whileRunning(words, errors: writing, limit: .seconds(60)) {
                (echo: Program) async throws in
                #expect(try await echo.lines(until: "ready") != nil)
                var text = drain(reading)
                echo.signal(SIGTERM)
                #expect(await echo.exitCode() == 0)
                text += drain(reading)
                #expect(text.contains("info host: listener echo: ws://127.0.0.1:"))
                #expect(text.contains("info host: stopping: 0 sessions"))
            }
        }
    }

    @Test func `A second signal ends it, also where neither standard output nor standard error takes anything`()
        async throws
    {
        try await withTemporaryFolder { (folder: String) async throws in
            try write(
                """
                control: s
                listeners: { a: { url: "ws://127.0.0.1:\(try await freePort())", routes: { /: { service: echo } } } }
                """, to: "\(folder)/host.yaml")
            try await withFullPipe { (reading: Int32, writing: Int32) async throws in
                try await Program.whileRunning(
                    ["run", "\(folder)/host.yaml"], output: writing, errors: writing, limit: .seconds(60)
                ) { (host: Program) async throws in
                    // It listens to signals before it makes this.
                    while !FileManager.default.fileExists(atPath: "\(folder)/s") {
                        try await Task.sleep(for: .milliseconds(10))
                    }
                    // Several that come before one is heard are one to the kernel.
                    let signals = Task {
                        while !Task.isCancelled {
                            host.signal(SIGTERM)
                            try await Task.sleep(for: .milliseconds(200))
                        }
                    }
                    #expect([0, 1].contains(await host.exitCode()))
                    signals.cancel()
                }
            }
        }
    }

    @Test func `Lines that find no room are counted, and the rest stays in order`() async throws {
        try await withFullPipe { (reading: Int32, writing: Int32) async throws in
            _ = drain(reading)
            // The pipe has room for some, the queue for some more.
            let queue = LineQueue(writing, limit: 10_000)
            let lines = (0..<2000).map { "\($0) " + String(repeating: "x", count: 90) }
            for line in lines { queue.write(Array("\(line)\n".utf8)) }
            var text = ""
            while !text.contains("lost here") {
                queue.flush(within: .milliseconds(10))
                text += drain(reading)
            }
            queue.write(Array("the last\n".utf8))
            queue.flush(within: .seconds(30))
            text += drain(reading)
            var rest = text.split(separator: "\n").map(String.init)
            #expect(rest.popLast() == "the last")
            var lost = 0
            var kept = 0
            for line in rest {
                if line.hasSuffix("lost here") {
                    lost += try #require(line.split(separator: " ").dropFirst().first.flatMap { Int($0) })
                } else {
                    #expect(line == lines[kept + lost])
                    kept += 1
                }
            }
            #expect(lost > 0 && kept > 0 && kept + lost == lines.count, "\(kept) kept, \(lost) lost")
        }
    }
}
