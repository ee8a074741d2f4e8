internal import Foundation

/// A library that is loaded into a program with its start, to move its clocks or to let its sends fail.
///
/// ```swift
/// let clock = try await ProcessClock(rig)
/// let client = try await tunnel.startClient(environment: clock.environment)
/// clock.sleep(for: .seconds(3_600))
/// ```
package struct ProcessClock: Sendable {
    /// What the program is to be started with.
    package let environment: [String: String]
    private let file: String
    private let offsets = Watched((wall: Int64(0), boot: Int64(0)))

    package init(_ rig: Rig) async throws {
        file = "\(rig.folder)/clock-\(UUID().uuidString)"
        try Data(count: 16).write(to: URL(fileURLWithPath: file))
        environment = ["LD_PRELOAD": try await Preload.library(rig), "RIG_CLOCK": file]
    }

    /// What the program sees after the machine has slept: the wall clock and CLOCK_BOOTTIME are ahead by that time, and
    /// CLOCK_MONOTONIC is not.
    package func sleep(for time: Duration) throws {
        try move(wall: time, boot: time)
    }

    /// Sets the wall clock ahead, or back.
    package func moveWall(by time: Duration) throws {
        try move(wall: time, boot: .zero)
    }

    private func move(wall: Duration, boot: Duration) throws {
        offsets.change { offsets in
            offsets.wall += Int64(wall.seconds * 1e9)
            offsets.boot += Int64(boot.seconds * 1e9)
        }
        // Written into the file that the program has mapped, never replaced.
        let now = offsets.value
        guard let handle = FileHandle(forWritingAtPath: file) else { throw RigFailure("the clock \(file) is gone") }
        for value in [now.wall, now.boot] { handle.write(withUnsafeBytes(of: value) { Data($0) }) }
        try handle.close()
    }
}

/// Lets a program's sends of several datagrams at once (GSO) fail, as some network cards do.
package enum SegmentFailure {
    /// What the program is to be started with.
    ///
    /// - Parameters:
    ///   - error: an errno, for example `EIO`.
    ///   - count: how many such sends succeed first.
    package static func environment(_ error: Int32, after count: Int, rig: Rig) async throws -> [String: String] {
        ["LD_PRELOAD": try await Preload.library(rig), "RIG_SEGMENT_FAILURE": "\(error),\(count)"]
    }
}

private enum Preload {
    /// Compiles the library into the rig's folder; the compiler came with Swift.
    static func library(_ rig: Rig) async throws -> String {
        let library = "\(rig.folder)/preload.so"
        if !FileManager.default.fileExists(atPath: library) {
            let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .appendingPathComponent("preload/preload.c").path
            try await runTool(["clang", "-O1", "-shared", "-fPIC", "-o", library, source])
        }
        return library
    }
}
