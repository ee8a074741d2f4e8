public import TransportKit

/// A carrier as the conformance suite sees it: its name, what it promises, and how to set it up.
public struct CarrierUnderTest: Sendable, CustomStringConvertible {
    /// The name in the output.
    public var name: String
    /// Whether several sessions may be open at once; where there is room for one, a second ends the first with 4409.
    public var hasRoomForMany: Bool
    /// How long a step of a check may take before it counts as hung.
    public var patience = Duration.seconds(60)
    /// Makes the carrier and its peer for one check.
    public var makeRig: @Sendable () async throws -> CarrierRig

    /// Describes a carrier.
    ///
    /// - Parameters:
    ///   - name: the name in the output.
    ///   - hasRoomForMany: whether several sessions may be open at once.
    ///   - makeRig: makes the carrier and its peer for one check.
    public init(
        name: String, hasRoomForMany: Bool = true, makeRig: @escaping @Sendable () async throws -> CarrierRig
    ) {
        self.name = name
        self.hasRoomForMany = hasRoomForMany
        self.makeRig = makeRig
    }

    /// The name.
    public var description: String { name }
}

/// A carrier and the peer that it reaches, for one check.
public struct CarrierRig: Sendable {
    /// What is tried.
    public var carrier: any Carrier
    /// The peer's end of the next session; it takes part in whatever handshake the carrier has.
    public var accept: @Sendable () async throws -> any Socket
    /// How often something was dialled so far.
    public var dials: @Sendable () -> Int
    /// Makes the way silent, or ends the silence: dials wait meanwhile, and what is on its way arrives late.
    public var silence: @Sendable (Bool) -> Void
    /// Takes down what ``CarrierUnderTest/makeRig`` set up; called once, after the carrier was closed.
    public var tearDown: @Sendable () async -> Void

    /// Puts a rig together.
    ///
    /// - Parameters:
    ///   - carrier: what is tried.
    ///   - accept: gives the peer's end of the next session.
    ///   - dials: counts what was dialled.
    ///   - silence: makes the way silent, or ends that.
    ///   - tearDown: takes everything down.
    public init(
        carrier: any Carrier, accept: @escaping @Sendable () async throws -> any Socket,
        dials: @escaping @Sendable () -> Int, silence: @escaping @Sendable (Bool) -> Void,
        tearDown: @escaping @Sendable () async -> Void
    ) {
        self.carrier = carrier
        self.accept = accept
        self.dials = dials
        self.silence = silence
        self.tearDown = tearDown
    }
}
