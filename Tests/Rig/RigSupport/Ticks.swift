/// What became of a byte that was sent to an echo at a steady pace.
package struct Ticks: Sendable {
    /// The time from one to the next.
    package static let interval = Duration.milliseconds(100)

    /// When each came back, in milliseconds from the beginning.
    package let arrivals: [Double]
    /// The number of the first of them.
    private let first: Int

    /// How much later than the one before it the latest one came back, in milliseconds.
    package var widestGap: Double { zip(arrivals, arrivals.dropFirst()).map { $1 - $0 }.max() ?? 0 }

    /// How long the slowest one took there and back, in milliseconds.
    package var slowest: Double {
        arrivals.enumerated().map { $1 - Double(first + $0) * Self.interval.milliseconds }.max() ?? 0
    }

    /// Those with such numbers alone.
    package func part(_ numbers: Range<Int>) -> Ticks {
        Ticks(arrivals: Array(arrivals[numbers]), first: first + numbers.lowerBound)
    }

    /// Sends `count` of them and waits until all have come back.
    package static func send(_ count: Int, over socket: RawSocket) async throws -> Ticks {
        let begun = monotonicNanoseconds()
        let step = UInt64(interval.milliseconds * 1e6)
        async let sending: Void = blocking {
            for tick in 0..<count {
                let due = begun + UInt64(tick) * step
                let now = monotonicNanoseconds()
                if due > now { pause(.nanoseconds(Int64(due - now))) }
                try socket.send([UInt8(truncatingIfNeeded: tick)])
            }
        }
        let arrivals = try await blocking {
            try (0..<count).map { tick in
                let byte = try socket.receive(exactly: 1, within: .seconds(10))
                guard byte == [UInt8(truncatingIfNeeded: tick)] else {
                    throw RigFailure("tick \(tick) came back as \(byte)")
                }
                return Double(monotonicNanoseconds() - begun) / 1e6
            }
        }
        try await sending
        return Ticks(arrivals: arrivals, first: 0)
    }
}
