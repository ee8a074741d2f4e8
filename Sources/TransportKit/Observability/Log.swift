internal import Synchronization

/// How much a line matters.
public enum LogLevel: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// For whoever debugs.
    case debug
    /// A change of state that an operator wants to see.
    case info
    /// Something went wrong and was dealt with.
    case warning
    /// Something went wrong and needs a person.
    case error

    /// Whether `left` matters less than `right`.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// Where lines go. Any thread may call it; it must not block for long and must not fail.
///
/// A line never holds a secret: the callers see to that, a sink need not look.
public protocol LogSink: Sendable {
    /// Takes one line.
    func write(level: LogLevel, subsystem: String, message: String)
}

/// Writes lines at or above a level to a sink, under the name of a subsystem. A value, cheap to copy.
///
/// A message that is below the level is never built.
public struct Log: Sendable {
    /// The lowest level that is written.
    public var level: LogLevel
    /// The name that stands before each line.
    public var subsystem: String
    private let sink: any LogSink

    /// Makes a log; without arguments one that writes nothing.
    public init(level: LogLevel = .info, subsystem: String = "", sink: any LogSink = NoLog()) {
        self.level = level
        self.subsystem = subsystem
        self.sink = sink
    }

    /// The same log under the name of another subsystem.
    public func named(_ subsystem: String) -> Log {
        Log(level: level, subsystem: subsystem, sink: sink)
    }

    /// Writes a line for whoever debugs.
    public func debug(_ message: @autoclosure () -> String) { write(.debug, message) }
    /// Writes a line about a change of state.
    public func info(_ message: @autoclosure () -> String) { write(.info, message) }
    /// Writes a line about something that went wrong and was dealt with.
    public func warning(_ message: @autoclosure () -> String) { write(.warning, message) }
    /// Writes a line about something that needs a person.
    public func error(_ message: @autoclosure () -> String) { write(.error, message) }

    private func write(_ level: LogLevel, _ message: () -> String) {
        guard level >= self.level else { return }
        sink.write(level: level, subsystem: subsystem, message: message())
    }
}

/// Drops every line.
public struct NoLog: LogSink {
    /// Makes the sink.
    public init() {}

    /// Does nothing.
    public func write(level: LogLevel, subsystem: String, message: String) {}
}

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
