import Foundation

/// The built program `transportkit` as a process of its own.
final class Program: Sendable {
    struct Ended {
        var code: Int32
        var output: String
        var errors: String
    }

    /// It is built beside the test program.
    static let path: String = {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("transportkit").path
    }()

    private struct Started: @unchecked Sendable {
        // Sendable is sound: a Process may be signalled and asked for its id from any thread.
        let process: Process
        let output: FileHandle
    }

    private let started: Started
    private let ended: Task<Int32, Never>

    var id: Int32 { started.process.processIdentifier }

    private init(_ words: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.path)
        process.arguments = words
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        let (codes, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        try process.run()
        started = Started(process: process, output: output.fileHandleForReading)
        ended = Task {
            for await code in codes { return code }
            return -1
        }
    }

    /// Runs the program to its end.
    static func run(_ words: [String], executable: String = path, input: String = "") async throws -> Ended {
        try await withTemporaryFolder { folder in
            let files = ["in", "out", "err"].map { "\(folder)/\($0)" }
            try input.write(toFile: files[0], atomically: true, encoding: .utf8)
            for file in files[1...] { try "".write(toFile: file, atomically: true, encoding: .utf8) }
            let process = Process()
            process.executableURL = URL(fileURLWithPath: executable)
            process.arguments = words
            process.standardInput = FileHandle(forReadingAtPath: files[0])
            process.standardOutput = FileHandle(forWritingAtPath: files[1])
            process.standardError = FileHandle(forWritingAtPath: files[2])
            let (codes, continuation) = AsyncStream.makeStream(of: Int32.self)
            process.terminationHandler = { process in
                continuation.yield(process.terminationStatus)
                continuation.finish()
            }
            try process.run()
            var code: Int32 = -1
            for await status in codes { code = status }
            return Ended(
                code: code, output: try String(contentsOfFile: files[1], encoding: .utf8),
                errors: try String(contentsOfFile: files[2], encoding: .utf8))
        }
    }

    /// Runs the program while `body` runs, and stops it afterwards.
    static func whileRunning(_ words: [String], _ body: (Program) async throws -> Void) async throws {
        let program = try Program(words)
        defer { program.signal(SIGKILL) }
        try await body(program)
        program.signal(SIGTERM)
        _ = await program.exitCode()
    }

    /// The lines of its output up to one of that text; nil where the output ends before.
    func lines(until last: String) async throws -> [String]? {
        var text = ""
        while true {
            let output = started.output
            let data = await Task.detached { output.availableData }.value
            guard !data.isEmpty else { return nil }
            text += String(decoding: data, as: UTF8.self)
            let lines = text.split(separator: "\n").map(String.init)
            if lines.contains(last) { return lines }
        }
    }

    func signal(_ number: Int32) {
        if started.process.isRunning { kill(id, number) }
    }

    func exitCode() async -> Int32 { await ended.value }
}
