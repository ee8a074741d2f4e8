internal import Synchronization

/// Counts what has become of connections, from any thread.
final class Tally: Sendable {
    private let begunCount = Atomic(0)
    private let endedCount = Atomic(0)
    private let failedCount = Atomic(0)

    func began() { begunCount.add(1, ordering: .relaxed) }
    func ended() { endedCount.add(1, ordering: .relaxed) }
    func failed() { failedCount.add(1, ordering: .relaxed) }

    var total: Int { begunCount.load(ordering: .relaxed) }
    /// Those that are open now.
    var open: Int { max(total - endedCount.load(ordering: .relaxed), 0) }
    var failures: Int { failedCount.load(ordering: .relaxed) }
}
