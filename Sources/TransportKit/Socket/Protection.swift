/// Who can read what travels. Ordered from nobody's protection to the strongest.
public enum Protection: Int, Sendable, Hashable, Comparable {
    /// Everybody on the path can read it.
    case none
    /// TLS to the host that was dialled.
    case transport
    /// End to end: no host between the two peers can read it.
    case endToEnd

    /// Whether `left` protects less than `right`.
    public static func < (left: Protection, right: Protection) -> Bool { left.rawValue < right.rawValue }
}
