import Testing
import TransportKit

@testable import RelayCarrier

/// What becomes of dials that fail and rooms that close (R97, R103, R104, R136).
@Suite struct JoinPlanTests {
    private let wall = WallTime.epoch(100)
    private let lost = Close.pathLost(TransportError(.refused, "nobody listens"))

    private func remote(_ code: CloseCode, _ reason: String = "") -> Close {
        Close(code, reason: reason, origin: .remote)
    }

    // R103: 0.5 s × 2^n, cap 60 s.
    @Test(arguments: ["app", "box"])
    func `The ceiling doubles up to a minute`(role: String) throws {
        var plan = JoinPlan(try #require(RelayWire.Role(rawValue: role)), settings: RelaySettings())
        let closes = [lost, remote(.badTarget, "join"), remote(.busy, "full"), remote(.goingAway)]
        let ceilings = (0..<24).map { index in
            plan.ended(closes[index % closes.count], wall: wall, random: { 1 }).inMilliseconds
        }
        #expect(ceilings.prefix(8) == [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000])
        #expect(ceilings.dropFirst(8).allSatisfy { $0 == 60_000 })
        #expect(plan.ended(lost, wall: wall, random: { 0 }) == .zero)
    }

    // R103, and the fault that a relay which accepts and crashes was dialled at the floor.
    @Test func `A client starts over with a delivered frame and not with an accept or a word`() {
        var plan = JoinPlan(.app, settings: RelaySettings())
        var last = Duration.zero
        for _ in 0..<6 {
            plan.joined()
            last = plan.ended(lost, after: .seconds(600), wall: wall, random: { 1 })
        }
        #expect(last == .seconds(16))
        plan.delivered()
        #expect(plan.ended(lost, wall: wall, random: { 1 }) == .milliseconds(500))
    }

    // R136
    @Test func `A box starts over after a minute of connection or with the turn of the epoch`() {
        var plan = JoinPlan(.box, settings: RelaySettings())
        for _ in 0..<6 { _ = plan.ended(lost, after: .milliseconds(59_999), wall: wall, random: { 1 }) }
        plan.delivered()
        #expect(plan.ended(lost, after: .milliseconds(59_999), wall: wall, random: { 1 }) == .seconds(32))
        #expect(plan.ended(lost, after: .seconds(60), wall: wall, random: { 1 }) == .milliseconds(500))
        for _ in 0..<6 { _ = plan.ended(lost, wall: wall, random: { 1 }) }
        #expect(plan.ended(remote(.epochTurned, "101"), wall: wall, random: { 0.5 }) == .milliseconds(2500))
        #expect(plan.ended(lost, wall: wall, random: { 1 }) == .milliseconds(500))
    }

    // R104
    @Test func `A wrong epoch is corrected at once twice in a row`() {
        var plan = JoinPlan(.app, settings: RelaySettings())
        #expect(plan.ended(remote(.displaced, "101"), wall: wall, random: { 1 }) == .zero)
        #expect(plan.epoch(at: wall) == 101)
        #expect(plan.ended(remote(.displaced, "99"), wall: wall, random: { 1 }) == .zero)
        #expect(plan.epoch(at: wall) == 99)
        #expect(plan.ended(remote(.displaced, "100"), wall: wall, random: { 1 }) == .milliseconds(500))
        #expect(plan.ended(remote(.displaced, "100"), wall: wall, random: { 1 }) == .seconds(1))
        #expect(plan.epoch(at: wall) == 100)
        // A room that was the right one ends the row.
        plan.joined()
        #expect(plan.ended(remote(.displaced, "101"), wall: wall, random: { 1 }) == .zero)
    }

    // R104: the turn of the epoch resets nothing but the row of corrections of a client.
    @Test func `The turn of the epoch is adopted and spread`() {
        var plan = JoinPlan(.app, settings: RelaySettings())
        for _ in 0..<3 { _ = plan.ended(lost, wall: wall, random: { 1 }) }
        #expect(plan.ended(remote(.epochTurned, "101"), wall: wall, random: { 0.25 }) == .milliseconds(750))
        #expect(plan.epoch(at: wall) == 101)
        #expect(plan.ended(lost, wall: wall, random: { 1 }) == .seconds(4))
        #expect(plan.ended(remote(.epochTurned, "50000"), wall: wall, random: { 0 }) == .zero)
        #expect(plan.epoch(at: wall) == 101)
    }

    // This end's own close with the same number is no word of the relay's.
    @Test func `Only the relay can correct the epoch`() {
        var plan = JoinPlan(.app, settings: RelaySettings())
        let own = Close(.displaced, reason: "101", origin: .local)
        #expect(plan.ended(own, wall: wall, random: { 1 }) == .milliseconds(500))
        #expect(plan.epoch(at: wall) == 100)
    }
}
