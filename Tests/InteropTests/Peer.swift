import Foundation
import Synchronization
import TransportKit

/// What an interop test found, in the words of both ends.
struct InteropFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A program that nobody here wrote, or one of `Peers/` on a library that nobody here wrote, as a process of its own.
///
/// It is killed when its scope ends, whatever happened. The Python programs end by themselves after 45 s.
final class Peer: Sendable {
    /// Runs a program until `body` is done.
    static func with<Result>(
        _ program: String, _ arguments: [String], _ body: (Peer) async throws -> Result
    ) async throws -> Result {
        let peer = try Peer(program, arguments)
        defer { peer.stop() }
        return try await body(peer)
    }

    /// Runs one of the Python programs until `body` is done.
    static func withPython<Result>(
        _ script: String, _ arguments: [String], _ body: (Peer) async throws -> Result
    ) async throws -> Result {
        let file = Peers.folder.appending(path: script).path
        return try await with(Peers.python, ["-B", file] + arguments, body)
    }

    private let process: Process
    private let output: Output

    private init(_ program: String, _ arguments: [String]) throws {
        let output = Output()
        let pipe = Pipe()
        pipe.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            if data.isEmpty { handle.readabilityHandler = nil }
            output.arrived(data)
        }
        process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = pipe
        process.standardInput = FileHandle.nullDevice
        self.output = output
        try process.run()
        // This end of the pipe that the process writes to would keep it open for ever.
        try pipe.fileHandleForWriting.close()
    }

    /// The port in the line `listening PORT`.
    func port() async throws -> UInt16 {
        let words = await output.line(startingWith: "listening ")?.split(separator: " ")
        guard let words, words.count == 2, let port = UInt16(words[1]) else {
            throw InteropFailure("the peer did not listen; it said: \(output.text)")
        }
        return port
    }

    /// The word behind `name` on the line that begins with it.
    func value(_ name: String) async throws -> String {
        guard let line = await output.line(startingWith: name + " ") else {
            throw InteropFailure("the peer did not tell its \(name); it said: \(output.text)")
        }
        return String(line.dropFirst(name.count + 1))
    }

    /// Waits for the process to be content: its last line is `ok`.
    func finish() async throws {
        await output.end()
        guard output.text.hasSuffix("ok\n") else { throw InteropFailure("the peer said: \(output.text)") }
    }

    /// Everything it has said so far.
    var text: String { output.text }

    /// Waits until it says something that contains `words`, or ends.
    func said(_ words: String) async -> Bool { await output.contains(words) }

    private func stop() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    /// What the process says, filled by the pipe's reader and read by one test.
    private final class Output: Sendable {
        private struct State {
            var data = Data()
            var hasEnded = false
        }

        private let state = Mutex(State())
        private let change = Signal()

        func arrived(_ data: Data) {
            state.withLock { state in
                state.data += data
                if data.isEmpty { state.hasEnded = true }
            }
            change.signal()
        }

        var text: String { state.withLock { String(decoding: $0.data, as: UTF8.self) } }

        private var hasEnded: Bool { state.withLock { $0.hasEnded } }

        func line(startingWith prefix: String) async -> String? {
            while true {
                let isLast = hasEnded
                let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                if let line = lines.first(where: { $0.hasPrefix(prefix) }) { return String(line) }
                if isLast { return nil }
                guard await change.wait() else { return nil }
            }
        }

        func contains(_ words: String) async -> Bool {
            while true {
                let isLast = hasEnded
                if text.contains(words) { return true }
                if isLast { return false }
                guard await change.wait() else { return false }
            }
        }

        func end() async {
            while !hasEnded { guard await change.wait() else { return } }
        }
    }
}

/// Where the peers are, and whether they can be used.
enum Peers {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Peers")
    private static let root = folder.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The interpreter of the virtual environment that `bin/setup test` makes.
    static let python = root.appending(path: ".venv/bin/python").path

    /// Where the peers are missing the tests are skipped, except on CI, where they then fail.
    static let areExpected = isOnCI || FileManager.default.isExecutableFile(atPath: python)

    static let isOnCI = ProcessInfo.processInfo.environment["CI"] == "true"
}
