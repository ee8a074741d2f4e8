@preconcurrency internal import Glibc

/// Seconds on the monotonic clock.
func seconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Durations of one kind, in microseconds.
struct Samples {
    private var values: [Double] = []

    init() {
        values.reserveCapacity(1 << 16)
    }

    /// Adds what passed since `start`, as `seconds()` gave it.
    mutating func add(since start: Double) {
        values.append((seconds() - start) * 1e6)
    }

    /// Adds a value.
    mutating func add(_ value: Double) {
        values.append(value)
    }

    var count: Int { values.count }

    /// The value below which the given share of the samples lies.
    func percentile(_ share: Double) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
}
