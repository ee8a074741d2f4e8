/// Where numbers go. Any thread may call it; it must be cheap and must not fail.
public protocol MetricsSink: Sendable {
    /// Adds to a counter, which only grows.
    func add(_ amount: Int, to counter: String)

    /// Changes a gauge, which goes up and down, such as the number of live sockets (R198).
    func change(_ gauge: String, by amount: Int)
}

/// Drops every number.
public struct NoMetrics: MetricsSink {
    /// Makes the sink.
    public init() {}

    /// Does nothing.
    public func add(_ amount: Int, to counter: String) {}

    /// Does nothing.
    public func change(_ gauge: String, by amount: Int) {}
}
