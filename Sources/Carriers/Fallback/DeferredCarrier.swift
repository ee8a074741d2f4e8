public import TransportKit

/// A carrier that is made when it is needed, and what is known of it before that.
public struct DeferredCarrier: Sendable {
    /// What its sessions can do at best.
    public var capabilities: Capabilities
    /// The least protection that a session of it can have.
    public var protection: Protection
    /// Makes it; opens nothing.
    public var make: @Sendable () throws -> any Carrier

    /// Describes a carrier.
    ///
    /// - Parameters:
    ///   - capabilities: what its sessions can do at best.
    ///   - protection: the least protection that a session of it can have.
    ///   - make: makes it; it opens nothing. It is called once, when the primary has ended.
    public init(
        capabilities: Capabilities, protection: Protection, make: @escaping @Sendable () throws -> any Carrier
    ) {
        self.capabilities = capabilities
        self.protection = protection
        self.make = make
    }

    /// Describes a carrier that is there already.
    ///
    /// - Parameter carrier: it has opened nothing.
    public init(_ carrier: any Carrier) {
        self.init(capabilities: carrier.capabilities, protection: carrier.protection) { carrier }
    }
}
