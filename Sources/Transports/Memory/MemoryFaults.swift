public import TransportKit

/// What is wrong with the ways of a ``MemoryNetwork``, as a test scripts it. Without changes nothing is.
public struct MemoryFaults: Sendable {
    /// How long anything takes from one end to the other; a dial takes its transport's round trips of it.
    public var delay = Duration.zero
    /// What every dial fails with, one round trip after it began; a scripted ICMP answer, for example.
    public var refusal: TransportError?
    /// Whether nothing gets through and nobody is told: a firewall that drops. Dials wait for their handshake limit,
    /// open sockets for their idle limit. What was sent reliably arrives late if the silence ends before that.
    public var isSilent = false
    /// Says which unreliable messages of a direction are lost, by their number from 0.
    public var losesUnreliable: @Sendable (Int) -> Bool = { _ in false }

    /// Makes faults that do nothing.
    public init() {}
}
