import Dispatch
import Foundation
import Glibc

/// The built program `transportkit` as a process of its own.
///
/// It is started by hand: Foundation's `Process` and `String(contentsOfFile:)` leak, which the address sanitizer reports.
final class Program: Sendable {
    struct Ended {
        var code: Int32
        var output: String
        var errors: String
    }

    struct CannotStart: Error {
        var code: Int32
    }

    /// It is built beside the test program.
    static let path: String = {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("transportkit").path
    }()

    let id: Int32
    private let output: Int32
    private let ended: Task<Int32, Never>

    private init(_ words: [String], _ executable: String, state: String, output out: Int32?, errors: Int32?) throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw CannotStart(code: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[1]) }
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nothing) }
        output = ends[0]
        id = try Self.spawn(
            executable, words, input: nothing, output: out ?? ends[1], errors: errors ?? nothing, state: state)
        ended = Task { [id] in await Self.wait(for: id) }
    }

    deinit { close(output) }

    /// Runs the program to its end.
    static func run(_ words: [String], executable: String = path, input: String = "") async throws -> Ended {
        try await withTemporaryFolder { folder in
            let files = ["in", "out", "err"].map { "\(folder)/\($0)" }
            try write(input, to: files[0])
            let descriptors = files.map { open($0, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
            defer { for descriptor in descriptors { close(descriptor) } }
            let id = try spawn(
                executable, words, input: descriptors[0], output: descriptors[1], errors: descriptors[2],
                state: "\(folder)/state")
            let code = await wait(for: id)
            return Ended(code: code, output: contents(descriptors[1]), errors: contents(descriptors[2]))
        }
    }

    /// Runs the program while `body` runs, and stops it afterwards.
    ///
    /// - Parameters:
    ///   - output: where its standard output goes instead of to ``lines(until:)``.
    ///   - errors: where its standard error goes; nowhere unless said otherwise.
    ///   - limit: how long it may run before it is killed, for a program that may hang.
    static func whileRunning(
        _ words: [String], executable: String = path, output: Int32? = nil, errors: Int32? = nil,
        limit: Duration? = nil, _ body: (Program) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let program = try Program(words, executable, state: folder, output: output, errors: errors)
            let watchdog = limit.map { limit in
                Task {
                    try await Task.sleep(for: limit)
                    program.signal(SIGKILL)
                }
            }
            defer { watchdog?.cancel() }
            do {
                try await body(program)
            } catch {
                program.signal(SIGKILL)
                _ = await program.exitCode()
                throw error
            }
            program.signal(SIGTERM)
            _ = await program.exitCode()
        }
    }

    /// The lines of its output up to one of that text; nil where the output ends before.
    func lines(until last: String) async throws -> [String]? {
        var text = ""
        while true {
            let bytes = await Self.onThread { [output] in
                var chunk = [UInt8](repeating: 0, count: 4096)
                let count = Glibc.read(output, &chunk, chunk.count)
                return count > 0 ? Array(chunk[..<count]) : []
            }
            guard !bytes.isEmpty else { return nil }
            text += String(decoding: bytes, as: UTF8.self)
            let lines = text.split(separator: "\n").map(String.init)
            if lines.contains(last) { return lines }
        }
    }

    /// Sends a signal; to a process that has ended it goes nowhere, since its id is kept until it is waited for.
    func signal(_ number: Int32) { kill(id, number) }

    /// Its exit code, or minus the signal that ended it.
    func exitCode() async -> Int32 { await ended.value }

    // MARK: - Processes

    private static func spawn(
        _ executable: String, _ words: [String], input: Int32, output: Int32, errors: Int32,
        state: String
    ) throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (from, to) in [(input, 0), (output, 1), (errors, 2)] {
            posix_spawn_file_actions_adddup2(&actions, from, Int32(to))
        }
        let arguments = ([executable] + words).map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        // What a host keeps for its next run is the test's alone.
        let surroundings = ProcessInfo.processInfo.environment.merging(["STATE_DIRECTORY": state]) { $1 }
        let environment = surroundings.map { strdup("\($0)=\($1)") } + [nil]
        defer { for variable in environment { free(variable) } }
        var id: pid_t = 0
        let result = posix_spawn(&id, executable, &actions, nil, arguments, environment)
        guard result == 0 else { throw CannotStart(code: result) }
        return id
    }

    private static func wait(for id: Int32) async -> Int32 {
        await onThread {
            var status: Int32 = 0
            while waitpid(id, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7f
            return signal == 0 ? (status >> 8) & 0xff : -signal
        }
    }

    /// Runs what blocks away from the threads that tasks share.
    private static func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "program").async { continuation.resume(returning: body()) }
        }
    }

    private static func contents(_ descriptor: Int32) -> String {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = pread(descriptor, &chunk, chunk.count, off_t(bytes.count))
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += chunk[..<count]
        }
    }
}
