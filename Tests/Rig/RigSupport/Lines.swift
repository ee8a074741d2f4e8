internal import Foundation
internal import Synchronization

/// What a program writes to one of its streams, line by line as it comes.
package final class Lines: Sendable {
    package struct Line: Sendable {
        package let text: String
        /// When it was read.
        package let at: ContinuousClock.Instant
    }

    private struct Written: Sendable {
        var lines: [Line] = []
        var isEnded = false
    }

    private let written = Watched(Written())
    /// For failures: whose lines these are.
    private let name: String

    /// Reads `descriptor` to its end and closes it.
    init(of descriptor: Int32, name: String) {
        self.name = name
        Thread { [written] in
            var rest: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 16_384)
            while true {
                let count = Foundation.read(descriptor, &chunk, chunk.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                rest += chunk[..<count]
                let now = ContinuousClock.now
                var lines: [Line] = []
                while let end = rest.firstIndex(of: 10) {
                    lines.append(Line(text: String(decoding: rest[..<end], as: UTF8.self), at: now))
                    rest.removeFirst(end + 1)
                }
                written.change { $0.lines += lines }
            }
            close(descriptor)
            written.change { written in
                if !rest.isEmpty {
                    written.lines.append(Line(text: String(decoding: rest, as: UTF8.self), at: .now))
                }
                written.isEnded = true
            }
        }.start()
    }

    /// All so far.
    package var all: [String] { written.value.lines.map(\.text) }
    /// How many there are so far: where a later wait may begin.
    package var count: Int { written.value.lines.count }

    /// Waits for a line that `matches`, from number `start` on.
    package func line(
        from start: Int = 0, within limit: Duration = .seconds(10), _ what: String = "a line",
        where matches: @escaping @Sendable (String) -> Bool
    ) async throws -> Line {
        /// What there was to find.
        enum Answer: Sendable {
            case line(Line)
            case ended
        }
        let answer: Answer = try await written.wait(
            within: limit, for: "\(what) in \(self.name); it was:\n\(self.text)"
        ) {
            if let line = $0.lines.dropFirst(start).first(where: { matches($0.text) }) { return .line(line) }
            return $0.isEnded ? .ended : nil
        }
        switch answer {
        case .line(let line): return line
        case .ended: throw RigFailure("\(name) ended without \(what); it was:\n\(text)")
        }
    }

    /// Waits for a line that contains `words`, from number `start` on.
    package func line(
        containing words: String, from start: Int = 0, within limit: Duration = .seconds(10)
    ) async throws -> Line {
        try await line(from: start, within: limit, "a line with \"\(words)\"") { $0.contains(words) }
    }

    /// All lines, those to come included, to the end of the stream.
    package var stream: AsyncStream<Line> {
        let cursor = Mutex(0)
        return AsyncStream { [written] in
            let next = cursor.withLock { cursor in
                cursor += 1
                return cursor - 1
            }
            let line: Line?? = try? await written.wait(within: .seconds(3_600), for: "a line") { written in
                if next < written.lines.count { return .some(written.lines[next]) }
                return written.isEnded ? .some(nil) : nil
            }
            return line ?? nil
        }
    }

    /// Waits for the end of the stream.
    func end(within limit: Duration) async throws {
        let _: Bool = try await written.wait(within: limit, for: "the end of \(self.name)") { $0.isEnded ? true : nil }
    }

    private var text: String { all.map { "    \($0)" }.joined(separator: "\n") }
}
