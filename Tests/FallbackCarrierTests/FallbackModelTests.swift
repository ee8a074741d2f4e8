import Testing
import TransportKit
import TransportKitTesting

@testable import FallbackCarrier

/// Random sequences of events against a record of plain facts, and against what must hold of every sequence.
@Suite struct FallbackModelTests {
    private static let closes: [Close] = [
        Close(.refused, origin: .remote), Close(.nobodyThere, origin: .remote), Close(.goingAway, origin: .remote),
        .pathLost(TransportError(.timedOut, "silence")), Close(.displaced, origin: .remote), .cancelled,
        .misuse("twice"), Close(.goingAway, reason: "the network has changed", origin: .local),
    ]
    private static let notUsable = Close(
        .unsupported, reason: "no tunnel", origin: .local, cause: TransportError(.unsupported, "no tunnel"))

    /// What an observer has seen.
    private struct Story {
        var now = 0
        var lastArrival: Int?
        var lastWake: Int?
        var lines: [String] = []
        var tale: String { lines.joined(separator: "\n") }
    }

    // R109–R113, R178
    @Test func `10,000 random stories go as the requirements say`() throws {
        var random = SeededGenerator.announced()
        var moves = 0
        for _ in 0..<10_000 where try play(&random) { moves += 1 }
        #expect((1000..<9900).contains(moves), "a game in which nothing, or always the same, happens: \(moves) moves")
    }

    /// - Returns: whether the relay took over.
    private func play(_ random: inout SeededGenerator) throws -> Bool {
        var machine = FallbackMachine(recovery: .milliseconds(FallbackModel.recovery))
        var model = FallbackModel()
        var story = Story()
        var nextID: UInt64 = 0
        for _ in 0..<Int.random(in: 3...30, using: &random) {
            let pause = [0, 0, 300, 1000, 2500, 5000, 5000, 30_000].randomElement(using: &random) ?? 0
            story.now += pause
            let now = Instant.zero + .milliseconds(story.now)
            // The driver is called at each deadline, a little late, and very late where the machine slept.
            if pause < 30_000 || Bool.random(using: &random) {
                while let deadline = machine.deadline, deadline <= now {
                    tell("on time", &machine, &model, &story, at: deadline) {
                        $0.passed(now: deadline)
                    } also: { model, _ in
                        model.passTime(Self.milliseconds(deadline))
                    }
                }
            } else {
                tell("late", &machine, &model, &story, at: now) {
                    $0.passed(now: now)
                } also: {
                    $0.passTime($1)
                }
            }
            let call = model.calls.sorted().randomElement(using: &random)
            let session = model.sessions.keys.sorted().randomElement(using: &random)
            switch Int.random(in: 0..<14, using: &random) {
            case 0..<3:
                nextID += 1
                let id = nextID
                tell("open \(id)", &machine, &model, &story, at: now) { machine in
                    let isPrimary = machine.opening(id, now: now) == .dialPrimary
                    if case .primary = machine.phase { #expect(isPrimary) } else { #expect(!isPrimary) }
                } also: {
                    $0.open(id, $1)
                }
            case 3..<6:
                guard let call else { continue }
                let isAsked = Bool.random(using: &random)
                tell("opened \(call)", &machine, &model, &story, at: now) {
                    let isWanted = $0.opened(call, isAsked: isAsked, now: now)
                    #expect(isWanted)
                } also: { model, _ in
                    model.opened(call, isAsked: isAsked)
                }
            case 6..<8:
                guard let call, let close = Self.close(&random) else { continue }
                fail(call, close, &machine, &model, &story, now)
            case 8:
                guard let session else { continue }
                tell("ask \(session)", &machine, &model, &story, at: now) {
                    $0.asked(session, now: now)
                } also: {
                    $0.ask(session, $1)
                }
            case 9..<11:
                guard let session, Int.random(in: 0..<3, using: &random) > 0 else { continue }
                story.lastArrival = story.now
                tell("arrive \(session)", &machine, &model, &story, at: now) {
                    $0.arrived(session)
                } also: { model, _ in
                    model.arrive(session)
                }
            case 11:
                guard let session else { continue }
                let close = Self.close(&random)
                tell("end \(session) \(close.map { "\($0)" } ?? "")", &machine, &model, &story, at: now) {
                    $0.ended(session, close, now: now)
                } also: {
                    $0.end(session, close.map { FallbackEvidence($0) }, $1)
                }
            case 12:
                guard let call else { continue }
                tell("give up \(call)", &machine, &model, &story, at: now) {
                    $0.gaveUp(call, now: now)
                } also: {
                    $0.giveUp(call, $1)
                }
            default:
                guard Int.random(in: 0..<3, using: &random) == 0 else { continue }
                // Where nothing was under way, there is nothing that could recover.
                if model.hasEverCarried || !model.calls.isEmpty || !model.sessions.isEmpty {
                    story.lastWake = story.now
                }
                tell("wake", &machine, &model, &story, at: now) {
                    $0.woken(now: now)
                } also: {
                    $0.wake($1)
                }
            }
        }
        return model.hasMoved
    }

    private static func close(_ random: inout SeededGenerator) -> Close? {
        if Int.random(in: 0..<40, using: &random) == 0 { return notUsable }
        return closes.randomElement(using: &random)
    }

    private static func milliseconds(_ instant: Instant) -> Int { Int(instant.nanoseconds / 1_000_000) }

    private func fail(
        _ call: UInt64, _ close: Close, _ machine: inout FallbackMachine, _ model: inout FallbackModel,
        _ story: inout Story, _ now: Instant
    ) {
        var reaction = FallbackMachine.Reaction.fail
        var isTold = false
        tell("fail \(call) \(close)", &machine, &model, &story, at: now) {
            reaction = $0.openFailed(call, close, now: now, fraction: 0.5)
        } also: {
            isTold = $0.failed(call, FallbackEvidence(close), $1)
        }
        switch reaction {
        case .fail: #expect(isTold)
        case .retry(let at):
            #expect(!isTold && !model.hasMoved && at >= now && at <= now + .seconds(5))
        case .takeOver: #expect(model.hasMoved)
        }
    }

    /// Tells both, and compares them.
    private func tell(
        _ what: String, _ machine: inout FallbackMachine, _ model: inout FallbackModel, _ story: inout Story,
        at now: Instant, _ change: (inout FallbackMachine) -> Void, also: (inout FallbackModel, Int) -> Void
    ) {
        let milliseconds = Self.milliseconds(now)
        story.lines.append("\(milliseconds) ms: \(what)")
        let before = machine
        change(&machine)
        also(&model, milliseconds)
        #expect((machine.phase != .primary) == model.hasMoved, "\(story.tale)")
        #expect(machine.deadline.map(Self.milliseconds) == model.deadline, "\(story.tale)")
        #expect(machine.phase == .primary ? machine.isCarrying == model.isCarrying : true, "\(story.tale)")
        #expect(machine.phase == .primary ? machine.hasEverCarried == model.hasEverCarried : true, "\(story.tale)")
        guard before.phase == .primary, case .leaving(let reason) = machine.phase else { return }
        let sinceArrival = story.lastArrival.map { milliseconds - $0 } ?? .max
        let sinceWake = story.lastWake.map { milliseconds - $0 } ?? .max
        switch reason {
        case .notUsable: break
        case .refused, .unreachable, .ended:
            #expect(
                story.lastArrival == nil && sinceWake >= 5000, "at once, though it has carried (R109)\n\(story.tale)")
        case .silent:
            #expect(story.lastArrival == nil && sinceWake >= 5000, "\(story.tale)")
        case .lost:
            #expect(sinceArrival >= 5000 && sinceWake >= 5000, "within the window (R113, R178)\n\(story.tale)")
        }
    }
}
