internal import CRig
internal import Foundation
internal import Synchronization

/// A program that runs beside the test, usually inside a namespace; the rig ends it.
///
/// It is started by hand, because Foundation's `Process` leaks and keeps signals ignored that the program should have.
package final class Program: Sendable {
    package let name: String
    package let id: Int32
    package let output: Lines
    package let errors: Lines
    /// Nil once it is closed.
    private let input: Mutex<Int32?>
    private let exit = Watched<Int32?>(nil)

    /// Starts `words`, the first of which is the program's path or its name.
    init(_ name: String, _ words: [String], environment: [String: String] = [:], folder: String? = nil) throws {
        let ends = (0..<3).map { _ in
            var pair: [Int32] = [-1, -1]
            let result = rig_pipe(&pair)
            precondition(result == 0, "no descriptor is left for a pipe")
            return pair
        }
        defer { for descriptor in [ends[0][0], ends[1][1], ends[2][1]] { close(descriptor) } }
        let surroundings = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let words = folder.map { ["env", "--chdir=\($0)"] + words } ?? words
        let result = withCStrings(words) { arguments in
            withCStrings(surroundings.map { "\($0)=\($1)" }) { environment in
                rig_spawn(words[0], arguments, environment, ends[0][0], ends[1][1], ends[2][1])
            }
        }
        input = Mutex(ends[0][1])
        output = Lines(of: ends[1][0], name: "the output of \(name)")
        errors = Lines(of: ends[2][0], name: "the errors of \(name)")
        self.name = name
        id = result
        guard result > 0 else { throw RigFailure("cannot start \(words): \(String(cString: strerror(-result)))") }
        Thread { [exit] in
            let code = rig_wait(result)
            exit.change { $0 = code }
        }.start()
    }

    deinit { closeInput() }

    package var isRunning: Bool { exit.value == nil }

    /// Writes to its standard input.
    package func write(_ text: String) throws {
        let bytes = Array(text.utf8)
        let count = input.withLock { $0.map { Foundation.write($0, bytes, bytes.count) } }
        guard count == bytes.count else { throw RigFailure("\(name) takes no input any more") }
    }

    /// Ends its standard input.
    package func closeInput() {
        input.withLock { input in
            if let descriptor = input { close(descriptor) }
            input = nil
        }
    }

    package func signal(_ number: Int32) {
        if isRunning { Foundation.kill(id, number) }
    }

    /// Stops it where it is (SIGSTOP), as a machine that sleeps does.
    package func freeze() { signal(SIGSTOP) }
    package func thaw() { signal(SIGCONT) }

    /// Ends it without any chance to say goodbye, and waits until it is gone.
    package func kill() async throws {
        signal(SIGKILL)
        _ = try await exitCode(within: .seconds(10))
    }

    /// Asks it to end (SIGTERM) and returns its exit code.
    @discardableResult
    package func terminate(within limit: Duration = .seconds(10)) async throws -> Int32 {
        signal(SIGTERM)
        return try await exitCode(within: limit)
    }

    /// Waits for its end: its exit code, or minus the signal that ended it.
    package func exitCode(within limit: Duration) async throws -> Int32 {
        try await exit.wait(within: limit, for: "the end of \(self.name)") { $0 }
    }

    /// Waits until all that it wrote is in `output` and `errors`.
    func settle() async throws {
        try await output.end(within: .seconds(10))
        try await errors.end(within: .seconds(10))
    }

    /// How many descriptors it has open.
    package var openDescriptors: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/fd"))?.count ?? 0
    }

    /// Everything it wrote, for whoever looks into a failure.
    package var transcript: String {
        let lines = output.all.map { "\(name) out | \($0)" } + errors.all.map { "\(name) err | \($0)" }
        return lines.joined(separator: "\n")
    }
}

/// Runs a program to its end and returns what it wrote. It throws where the exit code is not 0.
@discardableResult
package func runTool(_ words: [String], input: String? = nil, within limit: Duration = .seconds(20)) async throws
    -> String
{
    let program = try Program(words[0], words)
    if let input { try program.write(input) }
    program.closeInput()
    let code = try await program.exitCode(within: limit)
    try await program.settle()
    guard code == 0 else {
        throw RigFailure("\(words.joined(separator: " ")) ended with \(code): \(program.transcript)")
    }
    return program.output.all.joined(separator: "\n")
}

private func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    var pointers = strings.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { body($0.baseAddress!) }  // never empty: the nil is there
}
