package import TransportKit

/// Decides when which of several addresses is tried (RFC 8305 §5). No I/O and no clock: `now` is always handed in.
///
/// The first address is tried at once; each further one 250 ms after the last start, or as soon as an attempt fails. So a
/// black hole costs 250 ms and a refusal nothing (B18). The first success wins.
///
/// With a second round, addresses that have said nothing are tried once more, as further attempts: TCP sends a first packet
/// that was lost again only after a second (RFC 6298 §2.1).
package struct StaggeredDial {
    /// What the driver has to do.
    package enum Action: Equatable {
        /// Begin the attempt with this number; ``address(of:)`` says at which address.
        case start(Int)
        /// Call ``timeout(now:)`` then; calls for instants armed before do no harm.
        case arm(Instant)
        /// The attempt with this number has won; stop the others.
        case win(Int)
        /// The attempt with this number came second: drop what it made.
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
    private let rounds: Int
    private let stagger: Duration
    private var next = 0
    private var running: Set<Int> = []
    /// The addresses where an attempt has failed.
    private var failures: Set<Int> = []
    private var state = State.idle

    /// The pause between two starts that RFC 8305 recommends.
    package static let usualStagger: Duration = .milliseconds(250)
    /// How many addresses are tried at most. With the pause above, the last starts within three seconds.
    package static let usualLimit = 12

    /// Makes a dial of `count` addresses, of which at most `limit` are tried, silent ones up to `rounds` times.
    package init(count: Int, stagger: Duration = usualStagger, limit: Int = usualLimit, rounds: Int = 1) {
        precondition(count >= 0 && limit > 0 && rounds > 0 && stagger >= .zero, "a dial needs room for an attempt")
        self.count = min(count, limit)
        self.rounds = rounds
        self.stagger = stagger
    }

    /// Which address an attempt is made at, as an index.
    package func address(of attempt: Int) -> Int { attempt % count }

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

    /// That attempt has failed.
    package mutating func failed(_ attempt: Int, now: Instant) -> [Action] {
        running.remove(attempt)
        failures.insert(address(of: attempt))
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

    /// That attempt has succeeded.
    package mutating func succeeded(_ attempt: Int) -> [Action] {
        running.remove(attempt)
        switch state {
        case .dialing:
            state = .done
            return [.win(attempt)]
        case .idle, .done:
            return [.discard(attempt)]
        }
    }

    private mutating func startNext(now: Instant) -> [Action] {
        while next >= count, next < count * rounds, failures.contains(address(of: next)) { next += 1 }
        guard next < count * rounds else {
            state = .dialing(nextStart: nil)
            return []
        }
        let attempt = next
        next += 1
        running.insert(attempt)
        let nextStart = next < count * rounds ? now + stagger : nil
        state = .dialing(nextStart: nextStart)
        return [.start(attempt)] + (nextStart.map { [.arm($0)] } ?? [])
    }
}
