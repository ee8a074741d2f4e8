internal import TransportKit

/// The entries of a loop's timers, the earliest first: a binary heap.
struct TimerHeap {
    struct Entry {
        let instant: Instant
        let timer: LoopTimer
    }

    private(set) var entries: [Entry] = []

    /// When the earliest entry comes due.
    var earliest: Instant? { entries.first?.instant }

    mutating func insert(_ timer: LoopTimer, at instant: Instant) {
        entries.append(Entry(instant: instant, timer: timer))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].instant < entries[parent].instant else { return }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes the earliest entry if it has come due.
    mutating func takeDue(now: Instant) -> Entry? {
        guard let first = entries.first, first.instant <= now else { return nil }
        let last = entries.removeLast()
        guard !entries.isEmpty else { return first }
        entries[0] = last
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
                if entries[child].instant < entries[smallest].instant { smallest = child }
            }
            guard smallest != parent else { return first }
            entries.swapAt(parent, smallest)
            parent = smallest
        }
    }

    mutating func takeAll() -> [Entry] {
        defer { entries = [] }
        return entries
    }
}
