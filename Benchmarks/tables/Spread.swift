/// Durations of one kind, in milliseconds.
struct Spread: Sendable {
    private let sorted: [Double]

    init(_ values: [Double]) {
        precondition(!values.isEmpty, "nothing was measured")
        sorted = values.sorted()
    }

    var median: Double { percentile(0.5) }
    var worst: Double { percentile(1) }

    /// The least value that the given share of the samples does not exceed.
    func percentile(_ share: Double) -> Double {
        let rank = Int((Double(sorted.count) * share).rounded(.up))
        return sorted[min(max(rank, 1), sorted.count) - 1]
    }
}
