/// A destination seen from a network.
public struct PathKey: Sendable, Hashable {
    /// An opaque name of the network.
    public var network: String
    /// The destination, as host and port.
    public var destination: String

    /// Makes a key.
    public init(network: String, destination: String) {
        self.network = network
        self.destination = destination
    }
}
