internal import Foundation

/// How long a scenario lasts that is a matter of waiting.
package enum Length {
    /// Whether scenarios last as long as they do in the field: `RIG_LONG=1`.
    package static let isFull = ProcessInfo.processInfo.environment["RIG_LONG"] == "1"

    /// `short` where a test has to be over soon.
    package static func of(_ full: Duration, short: Duration) -> Duration { isFull ? full : short }
}
