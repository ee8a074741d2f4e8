internal import Glibc

/// Random numbers that a seed brings back: SplitMix64. For tests, never for secrets.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    /// What it started from.
    public let seed: UInt64
    private var state: UInt64

    /// Starts from a seed.
    public init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    /// Starts from a new seed, or from the one in the environment variable `TRANSPORTKIT_SEED`, and prints it on standard
    /// error, so that a failure can be repeated.
    public static func announced(for test: String = #function) -> SeededGenerator {
        let given = getenv("TRANSPORTKIT_SEED").flatMap { UInt64(String(cString: $0)) }
        let seed = given ?? .random(in: 0 ... .max)
        let line = "\(test): TRANSPORTKIT_SEED=\(seed)\n"
        line.withCString { _ = write(2, $0, strlen($0)) }
        return SeededGenerator(seed: seed)
    }

    /// The next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
