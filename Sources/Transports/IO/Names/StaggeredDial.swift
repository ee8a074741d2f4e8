package import TransportKit

/// Decides when which of several addresses is tried (RFC 8305 §5). No I/O and no clock: `now` is always handed in.
///
/// The first address is tried at once; each further one 250 ms after the last start, or as soon as an attempt fails. So a
/// black hole costs 250 ms and a refusal nothing (B18). The first success wins.
package struct StaggeredDial {
    /// What the driver has to do.
    package enum Action: Equatable {
        /// Try the address at this index.
        case start(Int)
        /// Call ``timeout(now:)`` then; calls for instants armed before do no harm.
        case arm(Instant)
        /// The attempt at this index has won; stop the others.
        case win(Int)
        /// The attempt at this index came second: drop what it made.
        case discard(Int)
        /// Every attempt has failed.
        case fail
    }

    private enum State {
        case idle
        case dialing(nextStart: Instant?)
        case done
    }

    private let count: Int
    private let stagger: Duration
    private var next = 0
    private var running: Set<Int> = []
    private var state = State.idle

    /// The pause between two starts that RFC 8305 recommends.
    package static let usualStagger: Duration = .milliseconds(250)
    /// How many addresses are tried at most. With the pause above, the last starts within three seconds.
    package static let usualLimit = 12

    /// Makes a dial of `count` addresses, of which at most `limit` are tried.
    package init(count: Int, stagger: Duration = usualStagger, limit: Int = usualLimit) {
        precondition(count >= 0 && limit > 0 && stagger >= .zero, "a dial needs room for an attempt")
        self.count = min(count, limit)
        self.stagger = stagger
    }

    /// The dial begins. Called once.
    package mutating func begin(now: Instant) -> [Action] {
        guard case .idle = state else { preconditionFailure("a dial begins once") }
        guard count > 0 else {
            state = .done
            return [.fail]
        }
        return startNext(now: now)
    }

    /// An instant that was armed has come.
    package mutating func timeout(now: Instant) -> [Action] {
        switch state {
        case .dialing(let nextStart):
            guard let nextStart, now >= nextStart else { return [] }
            return startNext(now: now)
        case .idle, .done:
            return []
        }
    }

    /// The attempt at `index` has failed.
    package mutating func failed(_ index: Int, now: Instant) -> [Action] {
        running.remove(index)
        switch state {
        case .dialing:
            if next < count { return startNext(now: now) }
            guard running.isEmpty else { return [] }
            state = .done
            return [.fail]
        case .idle, .done:
            return []
        }
    }

    /// The attempt at `index` has succeeded.
    package mutating func succeeded(_ index: Int) -> [Action] {
        running.remove(index)
        switch state {
        case .dialing:
            state = .done
            return [.win(index)]
        case .idle, .done:
            return [.discard(index)]
        }
    }

    private mutating func startNext(now: Instant) -> [Action] {
        let index = next
        next += 1
        running.insert(index)
        let nextStart = next < count ? now + stagger : nil
        state = .dialing(nextStart: nextStart)
        return [.start(index)] + (nextStart.map { [.arm($0)] } ?? [])
    }
}
