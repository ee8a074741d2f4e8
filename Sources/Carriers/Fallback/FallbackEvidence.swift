public import TransportKit

/// What the end of a session, or an attempt to open one, says of the carrier that it happened on.
///
/// Every case but ``nothing`` hands over to the secondary at once as long as the primary has never carried (R109), and
/// tells a person why.
public enum FallbackEvidence: Sendable, Hashable {
    /// The caller's own doing: a cancelled call, a call that was not allowed.
    case nothing
    /// This end may not use the carrier at all: it threw a local close whose cause is
    /// ``/TransportKit/TransportError/Code/unsupported`` (R91, R117).
    case notUsable
    /// The service turned this end away: 4401, 4403.
    case refused
    /// Nobody was reached: 1005, 1006, 4400, 4404.
    case unreachable
    /// A newer session of the same peer took the place: 4409.
    case displaced
    /// The session ended in another way, whoever ended it.
    case ended

    /// Reads a close.
    ///
    /// - Parameter close: what the carrier, or a session of it, has thrown.
    public init(_ close: Close) {
        switch close.origin {
        case .cancellation:
            self = .nothing
        case .local where close.cause?.code == .unsupported:
            self = .notUsable
        case .local where close.cause?.code == .misuse || close.code == .tooBig:
            self = .nothing
        case .local, .remote, .path:
            switch close.code {
            case .refused, .credentialRejected: self = .refused
            case .badTarget, .nobodyThere: self = .unreachable
            case .displaced: self = .displaced
            case _ where close.code.countsAsPathFailure: self = .unreachable
            default: self = .ended
            }
        }
    }
}
