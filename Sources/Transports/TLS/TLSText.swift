internal import Glibc
internal import TransportKit

/// Texts for messages about certificates.
enum TLSText {
    /// A time as people read it, for example `2026-11-30 07:00:00 UTC`.
    static func utc(_ time: WallTime) -> String {
        var seconds = time_t(time.seconds)
        var parts = unsafe tm()
        guard unsafe gmtime_r(&seconds, &parts) != nil else { return "\(time.seconds) s after 1970" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = unsafe "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return unsafe "\(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC"
    }

    /// The machine's clock, which GnuTLS compares certificates with.
    static func wallNow() -> WallTime {
        WallTime(seconds: Int64(time(nil)))
    }

    /// `a`, `a and b`, or `a, b and 3 more`.
    static func list(_ names: [String]) -> String {
        guard names.count > 1, let last = names.last else { return names.first ?? "nobody" }
        if names.count <= 4 { return names.dropLast().joined(separator: ", ") + " and " + last }
        return names.prefix(3).joined(separator: ", ") + " and \(names.count - 3) more"
    }
}
