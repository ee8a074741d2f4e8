/// How a session ended, as far as a policy needs to know.
public struct SessionEnding: Sendable, Hashable {
    /// What carried it.
    public var transport: TransportName
    /// How it ended.
    public var close: Close
    /// How long before the end its first message arrived, suspended time included; nil where none did (R46, R47).
    public var sinceFirstMessage: Duration?
    /// Whether it had moved to another network, or the machine had none any more; such a session blames none (R54).
    public var migrated: Bool

    /// Describes an end.
    public init(transport: TransportName, close: Close, sinceFirstMessage: Duration?, migrated: Bool = false) {
        self.transport = transport
        self.close = close
        self.sinceFirstMessage = sinceFirstMessage
        self.migrated = migrated
    }

    /// Whether the path broke, and whether that says something about the network it was dialled on (R50, R54).
    public var blamesPath: Bool {
        guard !migrated, close.code.countsAsPathFailure else { return false }
        switch close.origin {
        case .local, .cancellation: return false
        case .remote, .path: break
        }
        // Else the peer's machine has spoken: the service has ended or started anew, and the network let its word through.
        return close.cause?.code != .refused && close.cause?.code != .forgotten
    }

    /// How the path broke before or within `limit` of the first message, in words; nil where it did not (R46, R47).
    public func earlyDeath(within limit: Duration) -> String? {
        guard blamesPath else { return nil }
        guard let age = sinceFirstMessage else { return "it ended before its first message: \(close)" }
        guard age < limit else { return nil }
        return "the path was lost \(age.components.seconds) s after the first message"
    }
}
