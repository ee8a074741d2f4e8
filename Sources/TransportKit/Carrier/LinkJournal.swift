/// Writes one line per change and counts what repeats, so that a day without a network is a few lines.
///
/// What has failed already since the last session is told again at every power of two of its own count, also where it
/// alternates with others, as it does on two bad paths.
struct LinkJournal {
    private struct Reason {
        let text: String
        var count: Int
    }

    /// So many reasons are told apart; whatever writes ever new ones must not fill the memory.
    private static let limit = 16

    let name: String
    let log: Log
    private var failures = 0
    /// What has failed since the last session, the latest last.
    private var reasons: [Reason] = []

    init(name: String, log: Log) {
        self.name = name
        self.log = log
    }

    mutating func note(_ state: CarrierState, now: Instant) {
        switch state {
        case .idle, .connecting:
            break
        case .open(let path):
            let after = failures == 0 ? "" : " after \(failures) failures"
            log.info("\(name): connected · \(path.transport.displayName)\(after)")
            failures = 0
            reasons = []
        case .waiting(let until, let close):
            failures += 1
            let count = counted("\(close)")
            guard count & (count - 1) == 0 else { return }
            let row = failures == 1 ? "" : " (failure \(failures) in a row)"
            let wait = Int((until - now).inMilliseconds.rounded())
            log.warning("\(name): \(close)\(row); next attempt in \(wait) ms")
        case .closed(let close):
            log.info("\(name): closed: \(close)")
        }
    }

    /// How often that has failed by now.
    private mutating func counted(_ text: String) -> Int {
        let index = reasons.firstIndex { $0.text == text }
        let count = 1 + (index.map { reasons.remove(at: $0).count } ?? 0)
        reasons.append(Reason(text: text, count: count))
        if reasons.count > Self.limit { reasons.removeFirst() }
        return count
    }
}
