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
