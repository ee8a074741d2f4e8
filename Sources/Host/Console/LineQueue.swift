internal import Dispatch
internal import Glibc
internal import Synchronization
internal import TransportKit

/// Lines on their way to a descriptor that may take nothing for a while, such as a full pipe or a terminal that is held.
///
/// Whoever writes a line never waits: a thread of its own does. The descriptor stays as it is, because other processes share
/// its flags. What does not fit is lost, and once the descriptor takes lines again it is told how many.
package final class LineQueue: Sendable {
    private struct State {
        var lines: [[UInt8]] = []
        var bytes = 0
        var lost = 0
        var isWriting = false

        mutating func add(_ line: [UInt8]) {
            lines.append(line)
            bytes += line.count
        }

        /// The loss stands between what came before it and what came after.
        mutating func noteLoss() {
            guard lost > 0 else { return }
            add(Array("transportkit: \(lost) \(lost == 1 ? "line was" : "lines were") lost here\n".utf8))
            lost = 0
        }
    }

    private let descriptor: Int32
    private let limit: Int
    private let state = Mutex(State())
    // A serial queue has a thread of its own, however many others are stuck.
    private let queue = DispatchQueue(label: "transportkit.lines")

    /// Makes an empty queue.
    ///
    /// - Parameter limit: how many bytes wait at most.
    package init(_ descriptor: Int32, limit: Int = 256 << 10) {
        self.descriptor = descriptor
        self.limit = limit
    }

    /// Puts a line on its way, at once and on any thread.
    package func write(_ line: [UInt8]) {
        let starts = state.withLock { state in
            guard state.bytes == 0 || state.bytes + line.count <= limit else {
                state.lost += 1
                return false
            }
            state.noteLoss()
            state.add(line)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if starts { queue.async { [self] in writeAll() } }
    }

    /// Waits until all that is here now is written, but no longer than `limit`.
    package func flush(within limit: Duration) {
        guard state.withLock({ $0.isWriting }) else { return }
        let done = DispatchSemaphore(value: 0)
        queue.async { done.signal() }
        _ = done.wait(timeout: .now() + .nanoseconds(Int(limit.clampedNanoseconds)))
    }

    /// On the queue. Each line is one call, so that lines of several processes do not mix.
    private func writeAll() {
        while let lines = take() {
            for line in lines {
                // Where it fails there is nobody left to tell.
                Console.write(line, to: descriptor)
                state.withLock { $0.bytes -= line.count }
            }
        }
    }

    private func take() -> [[UInt8]]? {
        state.withLock { state in
            if state.lines.isEmpty { state.noteLoss() }
            guard !state.lines.isEmpty else {
                state.isWriting = false
                return nil
            }
            defer { state.lines = [] }
            return state.lines
        }
    }
}
