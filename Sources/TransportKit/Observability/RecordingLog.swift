internal import Synchronization

/// Keeps the last lines in memory, for tests and for `status`.
public final class RecordingLog: LogSink {
    /// One line.
    public struct Line: Sendable, Hashable {
        /// How much it matters.
        public let level: LogLevel
        /// Who wrote it.
        public let subsystem: String
        /// What it says.
        public let message: String
    }

    private let kept = Mutex<[Line]>([])
    private let limit: Int

    /// Makes a sink that keeps the last `limit` lines.
    public init(limit: Int = 10_000) {
        self.limit = limit
    }

    /// The lines, oldest first.
    public var lines: [Line] { kept.withLock { $0 } }

    /// Keeps one line.
    public func write(level: LogLevel, subsystem: String, message: String) {
        kept.withLock { kept in
            kept.append(Line(level: level, subsystem: subsystem, message: message))
            if kept.count > limit { kept.removeFirst(kept.count - limit) }
        }
    }
}
