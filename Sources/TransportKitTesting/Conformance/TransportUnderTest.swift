public import TransportKit

/// A transport as the conformance suite sees it: its name, what it promises, and how to set it up.
public struct TransportUnderTest: Sendable, CustomStringConvertible {
    /// The name in the output.
    public var name: String
    /// What its sockets can do; checks for what they cannot are left out.
    public var capabilities: Capabilities
    /// How long a step of a check may take before it counts as hung.
    public var patience = Duration.seconds(60)
    /// How much may lie between the two ends, in bytes, beyond what the limits say: the buffers of the kernel.
    public var pathBufferBytes = 0
    /// Whether its rig can make the listening end vanish (``TransportRig/vanish``).
    public var canVanish: Bool
    /// Makes the two ends of one check.
    public var makeRig: @Sendable () async throws -> TransportRig

    /// Describes a transport.
    public init(
        name: String, capabilities: Capabilities, pathBufferBytes: Int = 0, canVanish: Bool = false,
        makeRig: @escaping @Sendable () async throws -> TransportRig
    ) {
        self.name = name
        self.capabilities = capabilities
        self.pathBufferBytes = pathBufferBytes
        self.canVanish = canVanish
        self.makeRig = makeRig
    }

    /// The name.
    public var description: String { name }
}

/// The two ends of one check.
public struct TransportRig: Sendable {
    /// What dials.
    public var dialer: any Transport
    /// What listens; often the same.
    public var listener: any Transport
    /// Where to listen; port 0, so that checks can run beside each other.
    public var endpoint: Endpoint
    /// What every dial is told; a check changes limits and the like on top of it.
    public var dialOptions = DialOptions()
    /// What the listener is told; a check changes limits and the like on top of it.
    public var listenOptions = ListenOptions()
    /// Makes the listening end vanish: nothing it sends arrives any more, nothing tells the dialer.
    public var vanish: (@Sendable () async throws -> Void)?
    /// Takes down what ``TransportUnderTest/makeRig`` set up; called once, after everything is closed.
    public var tearDown: @Sendable () async -> Void = {}

    /// Makes a rig of one transport that dials itself.
    public init(_ transport: any Transport, endpoint: Endpoint) {
        dialer = transport
        listener = transport
        self.endpoint = endpoint
    }
}
