public import TransportKit

/// When a secondary took over, from whom, and why (R116, R139, R140).
public struct FallbackTakeover: Sendable, Hashable {
    /// The name of the primary.
    public var from: String
    /// The name of the secondary.
    public var to: String
    /// When.
    public var time: WallTime
    /// Why.
    public var reason: FallbackReason

    /// Makes the record of a takeover.
    ///
    /// - Parameters:
    ///   - from: the name of the primary.
    ///   - to: the name of the secondary.
    ///   - time: when.
    ///   - reason: why.
    public init(from: String, to: String, time: WallTime, reason: FallbackReason) {
        self.from = from
        self.to = to
        self.time = time
        self.reason = reason
    }
}

extension FallbackTakeover: CustomStringConvertible {
    /// For example `relay takes over from tunnel: nothing arrived for 5 s`.
    public var description: String { "\(to) takes over from \(from): \(reason)" }
}
