internal import Synchronization

/// The right to be the one connection that several dials race for.
///
/// Each transport takes the claim once, when it is open and before it says anything to the service. Whoever takes it
/// first goes on; for all others the claim is gone, and their dials end with ``TransportError/Code/superseded``, which
/// says that they would have worked. A dial whose claim was gone from the start is therefore a pure probe (R38, R41).
public final class Claim: Sendable {
    private let taken: Mutex<Bool>

    /// Makes a claim that is free.
    public init() {
        taken = Mutex(false)
    }

    private init(taken: Bool) {
        self.taken = Mutex(taken)
    }

    /// A claim that is gone: a dial with it only learns whether the transport opens.
    public static var gone: Claim { Claim(taken: true) }

    /// Takes the claim; any thread may try.
    ///
    /// - Returns: true for the first caller, false for all others.
    public func take() -> Bool {
        taken.withLock { taken in
            defer { taken = true }
            return !taken
        }
    }
}
