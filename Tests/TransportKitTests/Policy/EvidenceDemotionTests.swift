import Testing
import TransportKit

/// Each rule of the policy, as a story with a clock.
@Suite struct EvidenceDemotionTests {
    /// A path whose every event is proven at once.
    private struct Story {
        let policy = EvidenceDemotionPolicy()
        var history = PathHistory()
        var now = WallTime(seconds: 1_000_000)
        var fraction = 0.0

        var standsBack: Bool { policy.standsBack(.quic, history: history, at: now) }
        var minutesLeft: Int64? { history[.quic].demotion.map { ($0.until.seconds - now.seconds) / 60 } }

        mutating func pass(minutes: Int) {
            now = now + .seconds(minutes * 60)
            history.prune(at: now)
        }

        @discardableResult
        mutating func happens(_ event: PathEvent) -> Verdict {
            let verdict = policy.judge(event, history: history, at: now, fraction: fraction)
            history.apply(verdict, to: event.transport, at: now)
            return verdict
        }

        mutating func fails(_ code: TransportError.Code = .timedOut) {
            happens(.failedToOpen(.quic, TransportError(code, "no answer")))
        }

        mutating func breaks(after age: Duration?, migrated: Bool = false) {
            let close = Close(.pathLost, origin: .path, cause: TransportError(.idle, "silence"))
            happens(
                .ended(SessionEnding(transport: .quic, close: close, sinceFirstMessage: age, migrated: migrated)))
        }
    }

    @Test func `One strike is nothing, two within an hour are half an hour`() {
        var story = Story()
        story.fails()
        #expect(!story.standsBack)
        story.pass(minutes: 59)
        story.fails()
        #expect(story.standsBack && story.minutesLeft == 30)
        story.pass(minutes: 30)
        #expect(!story.standsBack)
    }

    @Test func `Two strikes an hour apart are one and one`() {
        var story = Story()
        story.fails()
        story.pass(minutes: 60)
        story.fails()
        #expect(!story.standsBack)
    }

    @Test func `An early death is one within five minutes, strictly`() {
        for (age, counts) in [(nil, true), (299, true), (300, false)] as [(Int?, Bool)] {
            var story = Story()
            for _ in 0..<2 { story.breaks(after: age.map { .seconds($0) }) }
            #expect(story.standsBack == counts)
        }
        var story = Story()
        for _ in 0..<2 { story.breaks(after: nil, migrated: true) }
        #expect(!story.standsBack)
    }

    @Test(arguments: [
        (TransportError.Code.timedOut, true), (.refused, true), (.blocked, true), (.unreachable, true),
        (.handshakeFailed, true), (.certificateExpired, false), (.pinMismatch, false), (.cancelled, false),
        (.resources, false), (.nameNotFound, false),
    ])
    func `Only what the network may have done is a strike`(code: TransportError.Code, counts: Bool) {
        var story = Story()
        for _ in 0..<2 { story.fails(code) }
        #expect(story.standsBack == counts)
    }

    @Test func `Each further demotion lasts twice as long, up to a day`() {
        var story = Story()
        var lasted: [Int64] = []
        for _ in 0..<9 {
            for _ in 0..<2 { story.breaks(after: .zero) }
            lasted.append(story.minutesLeft ?? 0)
            story.pass(minutes: Int(story.minutesLeft ?? 0))
            #expect(!story.standsBack)
        }
        #expect(lasted == [30, 60, 120, 240, 480, 960, 1440, 1440, 1440])
    }

    @Test func `Chance makes it up to a quarter longer, a day at most`() {
        var story = Story()
        story.fraction = 1
        for _ in 0..<2 { story.fails() }
        #expect(story.minutesLeft == 37)
        story.history[.quic].demotion = nil
        story.history[.quic].demotionsInARow = 20
        for _ in 0..<2 { story.fails() }
        #expect(story.minutesLeft == 1440)
    }

    @Test func `While the other transport is in doubt it is suspended`() {
        var story = Story()
        for _ in 0..<2 { story.fails() }
        story.history[.webSocket].lastFailure = story.now
        #expect(!story.standsBack)
        story.pass(minutes: 4)
        #expect(!story.standsBack)
        story.pass(minutes: 1)
        #expect(story.standsBack)
    }

    @Test func `While it stands back it is probed every ten minutes`() {
        var story = Story()
        func mayProbe() -> Bool { story.policy.mayProbe(.quic, history: story.history, at: story.now) }
        story.history[.quic].lastProbe = story.now
        #expect(mayProbe())
        for _ in 0..<2 { story.fails() }
        #expect(!mayProbe())
        story.pass(minutes: 9)
        #expect(!mayProbe())
        story.pass(minutes: 1)
        #expect(mayProbe())
    }

    @Test func `A probe that opens lifts what had not opened, and not what broke after opening`() {
        var story = Story()
        for _ in 0..<2 { story.fails() }
        #expect(story.happens(.probed(.quic)) == .lift)
        #expect(!story.standsBack)
        // It has not proven itself yet: the next demotion is longer.
        for _ in 0..<2 { story.fails() }
        #expect(story.minutesLeft == 60)
        var other = Story()
        other.fails()
        other.breaks(after: .zero)
        #expect(other.happens(.probed(.quic)) == .sound)
        #expect(other.standsBack)
    }

    @Test func `A session that stands for five minutes clears everything`() {
        var story = Story()
        for _ in 0..<2 { story.breaks(after: .zero) }
        story.happens(.lasted(.quic))
        #expect(!story.standsBack)
        story.breaks(after: .zero)
        #expect(!story.standsBack)
        story.breaks(after: .zero)
        #expect(story.minutesLeft == 30)
        #expect(EvidenceDemotionPolicy().soundness == .seconds(300))
    }

    @Test func `Nothing is ever held against another transport`() {
        var story = Story()
        for _ in 0..<5 { story.happens(.failedToOpen(.webSocket, TransportError(.timedOut, "no answer"))) }
        #expect(!story.policy.standsBack(.webSocket, history: story.history, at: story.now))
    }
}
