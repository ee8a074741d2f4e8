import Foundation

/// A program that a test talks to.
final class PeerProcess: @unchecked Sendable {
    // Sendable is sound: `Process` may be asked from any thread once it runs, and nothing else changes.
    private let process = Process()
    private let exit = DispatchGroup()

    init(_ program: URL, _ arguments: [String], log: URL) throws {
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        let output = try FileHandle(forWritingTo: log)
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = log.deletingLastPathComponent()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        exit.enter()
        process.terminationHandler = { [exit] _ in exit.leave() }
        try process.run()
    }

    /// Waits for its end.
    func ended() async {
        await withCheckedContinuation { continuation in
            exit.notify(queue: .global()) { continuation.resume() }
        }
    }

    /// Ends it.
    func stop() {
        process.terminate()
    }
}
