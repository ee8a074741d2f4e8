internal import TransportKit

/// Tells a service that is gone from reports that are late or forged (B29): the machine at the other end says again and
/// again that nobody listens, and nothing else comes from there.
///
/// An idle limit would notice only after most of a minute. Whoever forges reports, which takes the ports of both ends, gets
/// nowhere while the service answers.
struct RefusalWatch {
    /// So many reports, over so long: longer than a path that lives stays silent when it is probed (RFC 9002 §6.2).
    private static let reportLimit = 3
    private static let span = Duration.seconds(2)

    private var count = 0
    private var since = Instant.zero

    /// Something came from the peer.
    mutating func heard() { count = 0 }

    /// Takes a report.
    ///
    /// - Returns: whether the peer is gone.
    mutating func refused(_ now: Instant) -> Bool {
        if count == 0 { since = now }
        count += 1
        return count >= Self.reportLimit && now - since >= Self.span
    }
}
