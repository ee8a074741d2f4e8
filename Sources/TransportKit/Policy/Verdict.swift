/// What follows from an event.
public enum Verdict: Sendable, Hashable {
    /// Nothing.
    case sound
    /// It is held against the transport.
    case strike(TransportHistory.Strike)
    /// The transport stands back for a while.
    case demote(lifetime: Duration, kind: TransportHistory.Strike.Kind, reason: String)
    /// The transport stands back no longer, but stays unproven.
    case lift
    /// Everything that was held against the transport is forgotten.
    case clear
}
