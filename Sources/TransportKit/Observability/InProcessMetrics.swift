internal import Synchronization

/// Keeps the numbers in memory, for tests and for `status`.
public final class InProcessMetrics: MetricsSink {
    private let values = Mutex<[String: Int]>([:])

    /// Makes an empty set of numbers.
    public init() {}

    /// Every number by its name.
    public var snapshot: [String: Int] { values.withLock { $0 } }

    /// The number of that name, 0 where nobody has written it.
    public subscript(name: String) -> Int { values.withLock { $0[name] ?? 0 } }

    /// Adds to a counter.
    public func add(_ amount: Int, to counter: String) {
        values.withLock { $0[counter, default: 0] += amount }
    }

    /// Changes a gauge.
    public func change(_ gauge: String, by amount: Int) {
        values.withLock { $0[gauge, default: 0] += amount }
    }
}
