public import TransportKit

/// Why the secondary took over from the primary (R116, R140).
public enum FallbackReason: Sendable, Hashable {
    /// This end may not use the primary (R117).
    case notUsable(Close)
    /// The service refused before anything had arrived.
    case refused(Close)
    /// Nobody was reached.
    case unreachable(Close)
    /// A session ended before anything had arrived on it.
    case ended(Close)
    /// Nothing had arrived for so long (R111).
    case silent(Duration)
    /// It had carried, and did not again within so long; the last end is there where one is known (R112).
    case lost(Duration, Close?)
}

extension FallbackReason: CustomStringConvertible {
    /// The reason in words.
    public var description: String {
        switch self {
        case .notUsable(let close): "it may not be used here: \(close)"
        case .refused(let close): "it refused: \(close)"
        case .unreachable(let close): "it could not be reached: \(close)"
        case .ended(let close): "its session ended before anything had arrived: \(close)"
        case .silent(let duration): "nothing arrived for \(duration.inWords)"
        case .lost(let duration, let close):
            "it did not carry again within \(duration.inWords)" + (close.map { ": \($0)" } ?? "")
        }
    }
}
