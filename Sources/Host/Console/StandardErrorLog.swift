internal import Glibc
public import TransportKit

/// Writes lines to standard error: time of day, level, subsystem, message.
///
/// A line is written by a thread of its own, and whoever logs never waits. While standard error takes nothing, 256 KiB of
/// lines are kept; the lines that are lost beyond that are counted, and it is told how many once it takes lines again.
public struct StandardErrorLog: LogSink {
    /// Makes the sink.
    public init() {}

    /// Puts one line on its way. It is written in one call, so that lines of several processes do not mix.
    public func write(level: LogLevel, subsystem: String, message: String) {
        Console.complain(Self.line(level, subsystem, message, at: Self.timeOfDay()))
    }

    /// One line, whatever a peer has put into its words: it neither ends the line nor moves a cursor.
    static func line(_ level: LogLevel, _ subsystem: String, _ message: String, at time: String) -> String {
        let name = subsystem.isEmpty ? "" : " \(subsystem):"
        return "\(time) \(Self.name(level))\(name) \(message)".printable(limit: 4096)
    }

    private static func name(_ level: LogLevel) -> String {
        switch level {
        case .debug: "debug"
        case .info: "info"
        case .warning: "warning"
        case .error: "error"
        }
    }

    /// Hours to milliseconds, in the machine's own time zone.
    private static func timeOfDay() -> String {
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        var local = unsafe tm()
        unsafe localtime_r(&now.tv_sec, &local)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let milliseconds = "\(1000 + now.tv_nsec / 1_000_000)".dropFirst()
        return unsafe "\(two(local.tm_hour)):\(two(local.tm_min)):\(two(local.tm_sec)).\(milliseconds)"
    }
}
