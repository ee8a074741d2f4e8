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

/// Drops every line.
public struct NoLog: LogSink {
    /// Makes the sink.
    public init() {}

    /// Does nothing.
    public func write(level: LogLevel, subsystem: String, message: String) {}
}
