internal import TransportKit
internal import TunnelCarrier

/// What happens when nothing does.
extension DoorTable {
    /// Deadlines are kept to this: a look at all of them is not worth less.
    static let tick = Duration.milliseconds(100)

    /// When ``passed(now:)`` has something to do; nil where nothing is waited for.
    var deadline: Instant? { earliest }

    /// Time has passed.
    mutating func passed(now: Instant) {
        guard let due = earliest, now >= due else { return }
        earliest = nil
        for session in timed.values {
            guard let until = session.deadline else { continue }
            guard now >= until else {
                expectLater(until, now: now)
                continue
            }
            late(session, now: now)
        }
        for party in links.values {
            if let until = party.link.deadline {
                if now >= until { late(party, now: now) } else { expectLater(until, now: now) }
            }
            if case .box(let box) = party { expire(box, now: now) }
        }
    }

    private mutating func expectLater(_ deadline: Instant, now: Instant) {
        expect(max(deadline, now + Self.tick))
    }

    /// The box has not answered, or an end does not get through.
    private mutating func late(_ session: DoorSession, now: Instant) {
        if case .begun = session.phase {
            perform(.count("door.sessions.unanswered", 1))
            // The box forgets by itself what it has not answered.
            if let box = session.box { detach(session, from: box) }
        }
        abort(session, now: now)
    }

    private mutating func late(_ party: Party, now: Instant) {
        if party.link.isOverrun {
            return close(party, .tooSlow, "it does not read what the door says", now: now)
        }
        switch (party, party.link.phase) {
        case (_, .closed):
            return
        case (_, .silent):
            close(party, .tooSlow, "message 1 did not come in time", now: now)
        case (.client, .greeted):
            close(party, .tooSlow, "enter did not come in time", now: now)
        case (.client, .proved):
            close(party, .nobodyThere, "no box has linked", now: now)
        case (.box, .greeted), (.box, .proved):
            close(party, .tooSlow, "a whole roster did not come in time", now: now)
        }
    }

    private mutating func expire(_ box: BoxLink, now: Instant) {
        guard !box.expected.isEmpty else { return }
        let count = box.expected.count
        box.expected.removeAll { now >= $0.until }
        for expectation in box.expected { expectLater(expectation.until, now: now) }
        if box.expected.count < count { judgePaired(at: box, now: now) }
    }
}
