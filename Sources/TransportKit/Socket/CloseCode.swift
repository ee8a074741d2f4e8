/// Why a conversation ended, as one number on every transport (R120).
///
/// It travels in the WebSocket's close frame and in QUIC's application error. Numbers outside the table pass through
/// unchanged, so a service may have its own.
public struct CloseCode: Sendable, Hashable, RawRepresentable {
    /// The number on the wire.
    public let rawValue: UInt64

    /// Makes a code of any number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// 1000: the purpose is fulfilled.
    public static let normal = CloseCode(rawValue: 1000)
    /// 1001: the end point goes away, for example because its program stops.
    public static let goingAway = CloseCode(rawValue: 1001)
    /// 1002: the peer broke the protocol.
    public static let protocolError = CloseCode(rawValue: 1002)
    /// 1003: the peer sent a kind of data that is not supported.
    public static let unsupported = CloseCode(rawValue: 1003)
    /// 1005: the peer gave no code. Never on the wire.
    public static let noneGiven = CloseCode(rawValue: 1005)
    /// 1006: the path was lost. Never on the wire.
    public static let pathLost = CloseCode(rawValue: 1006)
    /// 1007: text that is not UTF-8.
    public static let badText = CloseCode(rawValue: 1007)
    /// 1008: a rule of the service was broken.
    public static let policy = CloseCode(rawValue: 1008)
    /// 1009: a message above the limit.
    public static let tooBig = CloseCode(rawValue: 1009)
    /// 1011: the service failed.
    public static let internalError = CloseCode(rawValue: 1011)
    /// 1012: the service restarts.
    public static let restarting = CloseCode(rawValue: 1012)
    /// 1013: try again later.
    public static let tryAgainLater = CloseCode(rawValue: 1013)
    /// 4400: bad join or target.
    public static let badTarget = CloseCode(rawValue: 4400)
    /// 4401: the credential was rejected.
    public static let credentialRejected = CloseCode(rawValue: 4401)
    /// 4403: not admitted.
    public static let refused = CloseCode(rawValue: 4403)
    /// 4404: nobody there.
    public static let nobodyThere = CloseCode(rawValue: 4404)
    /// 4408: the peer was too slow.
    public static let tooSlow = CloseCode(rawValue: 4408)
    /// 4409: wrong epoch, or displaced by a newer session.
    public static let displaced = CloseCode(rawValue: 4409)
    /// 4410: the epoch turned over.
    public static let epochTurned = CloseCode(rawValue: 4410)
    /// 4429: busy.
    public static let busy = CloseCode(rawValue: 4429)

    /// Whether the code only says what one end saw and is never sent: 1005 and 1006 (R120).
    public var isSynthetic: Bool { self == .noneGiven || self == .pathLost }

    /// Whether an end with this code means that the path failed rather than that the service spoke (R50).
    public var countsAsPathFailure: Bool { rawValue < 1000 || isSynthetic }

    /// The name of the code in the table, or nil for a number of a service's own.
    public var name: String? { Self.names[self] }

    /// Every code of the table with its name.
    public static let names: [CloseCode: String] = [
        .normal: "normal", .goingAway: "going away", .protocolError: "protocol error", .unsupported: "unsupported",
        .noneGiven: "none given", .pathLost: "path lost", .badText: "bad text", .policy: "policy",
        .tooBig: "too big", .internalError: "internal error", .restarting: "restarting",
        .tryAgainLater: "try again later", .badTarget: "bad target", .credentialRejected: "credential rejected",
        .refused: "refused", .nobodyThere: "nobody there", .tooSlow: "too slow", .displaced: "displaced",
        .epochTurned: "epoch turned over", .busy: "busy",
    ]
}

extension CloseCode: CustomStringConvertible {
    /// The number and, where the table has one, the name: `1006 path lost`.
    public var description: String { name.map { "\(rawValue) \($0)" } ?? "\(rawValue)" }
}
