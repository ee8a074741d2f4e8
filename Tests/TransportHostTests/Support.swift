import Foundation
import TransportHost
import TransportIO
import TransportKit

/// Runs `body` on a loop of its own.
func withLoop<Result: Sendable>(
    _ body: @escaping @Sendable (EventLoop) async throws -> Result
) async throws -> Result {
    let loop = try EventLoop(name: "test")
    let outcome = await Task(executorPreference: loop) { () async -> Swift.Result<Result, any Error> in
        do {
            return .success(try await body(loop))
        } catch {
            return .failure(error)
        }
    }.value
    await loop.shutdown()
    return try outcome.get()
}

/// Makes the graph of a config text, as `check` and `run` do.
func makeGraph(
    _ text: String, loop: EventLoop, listenerLoops: ListenerLoops = ListenerLoops(), folder: String = ".",
    allowsAnyPort: Bool = false, log: Log = Log(), extending: (inout Registry) throws -> Void = { _ in }
) throws -> HostGraph {
    var registry = try StandardRegistry.make(loop: loop, listenerLoops: listenerLoops)
    try extending(&registry)
    return try HostGraph(
        HostConfiguration(text: text, name: "host.yaml", folder: folder), registry: registry,
        context: BuildContext(executor: loop, time: loop, log: log), allowsAnyPort: allowsAnyPort)
}

/// What is wrong with a config text, line by line; nil if nothing is.
func complaints(
    _ text: String, folder: String = ".", extending: @escaping @Sendable (inout Registry) throws -> Void = { _ in }
) async throws -> [String]? {
    try await withLoop { loop in
        do {
            _ = try makeGraph(text, loop: loop, folder: folder, extending: extending)
            return nil
        } catch let errors as ConfigErrors {
            return errors.errors.map(\.description)
        }
    }
}

/// A port that is free for TCP and most likely for UDP too.
func freePort() async throws -> UInt16 {
    try await withLoop { loop in
        let listener = try await TCPListener.bind(.loopback(), loop: loop)
        defer { Task { await listener.close() } }
        return listener.localAddress.port
    }
}

/// Makes a folder, and removes it with all in it afterwards.
func withTemporaryFolder<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("host-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder.path)
}

func write(_ text: String, to file: String) throws {
    try text.write(toFile: file, atomically: true, encoding: .utf8)
}
