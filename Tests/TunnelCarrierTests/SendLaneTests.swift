import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// What one session sends at one hop: order, credit, and how far a frame is passed.
@Suite struct SendLaneTests {
    private static let session = TunnelSessionID(rawValue: 1)

    private static func frame(_ kind: TunnelFrame.Kind, _ mark: Int, bytes: Int = 8) -> TunnelFrame {
        var payload = Bytes(repeating: 0, count: max(bytes, 8))
        for index in 0..<8 { payload[index] = UInt8(truncatingIfNeeded: mark >> (8 * index)) }
        return TunnelFrame(kind, session: session, payload: payload)
    }

    private func next(_ lane: inout SendLane) -> TunnelFrame? { lane.next() }

    private func put(_ lane: inout SendLane, _ frame: TunnelFrame) -> Bool { lane.put(frame) }

    @Test func `10,000 random events go as the model of plain records has them`() {
        var random = SeededGenerator.announced()
        let window = UInt32.random(in: DoorLimits.window.lowerBound...400_000, using: &random)
        var lane = SendLane(session: Self.session, window: window)
        var model = LaneModel(window: window)
        var (gone, dropped) = (0, 0)
        // Now and then credit stays away, or nobody takes anything.
        var (isGiving, isTaking) = (true, true)
        for step in 0..<10_000 {
            if step % 400 == 0 {
                isGiving = Int.random(in: 0..<3, using: &random) > 0
                isTaking = Int.random(in: 0..<4, using: &random) > 0
            }
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5 where model.waiting.count < 600:
                let kinds: [TunnelFrame.Kind] = [.control, .bulk, .unreliable, .begin]
                let kind = kinds[Int.random(in: 0..<(step == 0 ? 4 : 3), using: &random)]
                let bytes = Int.random(in: 0..<20, using: &random) == 0 ? 65_511 : 200
                let frame = Self.frame(kind, step, bytes: .random(in: 8...bytes, using: &random))
                let isKept = lane.put(frame)
                let isExpected = model.put(frame)
                #expect(isKept == isExpected)
                dropped += isKept ? 0 : 1
            case 5 where isGiving:
                let total = model.spent + .random(in: 0...UInt64(window), using: &random)
                lane.credit(total)
                model.granted = max(model.granted, total)
            case _ where isTaking:
                let isReady = lane.isReady
                let frame = lane.next()
                let expected = model.next()
                #expect(isReady == (frame != nil))
                #expect(frame == expected)
                gone += frame == nil ? 0 : 1
            case _:
                break
            }
            #expect(lane.waitingCost == model.waiting.reduce(0) { $0 + UInt64($1.frame.payload.count) + 64 })
        }
        #expect(lane.dropped == dropped)
        lane.finish()
        model.isFinishing = true
        lane.credit(.max / 2)
        model.granted = .max / 2
        while let expected = model.next() { #expect(next(&lane) == expected) }
        #expect(next(&lane) == nil && lane.isEnded && lane.waitingCost == 0)
        #expect(gone > 1_000)
    }

    @Test func `However much bulk waits, control has room and goes first`() {
        var lane = SendLane(session: Self.session, window: DoorLimits.defaultWindow)
        for mark in 0..<100 { lane.put(Self.frame(.bulk, mark, bytes: 60_000)) }
        var bulk: UInt64 = 0
        while let frame = lane.next() { bulk += frame.cost }
        #expect(bulk > 150_000 && bulk <= UInt64(DoorLimits.defaultWindow) * 7 / 8)
        lane.put(Self.frame(.control, 100, bytes: 30_000))
        #expect(next(&lane)?.kind == .control)
    }

    @Test func `Bulk is passed by 256 frames and no more, and then control waits for it`() {
        var lane = SendLane(session: Self.session, window: DoorLimits.window.lowerBound)
        // Three of these fill what bulk may take.
        for mark in 0..<3 { lane.put(Self.frame(.bulk, mark, bytes: 57_000)) }
        while lane.next() != nil {}
        lane.put(Self.frame(.bulk, 3, bytes: 57_000))
        for mark in 0..<300 { lane.put(Self.frame(mark % 8 == 0 ? .unreliable : .control, mark)) }
        var passed = 0
        while let frame = lane.next() {
            #expect(frame.kind != .bulk)
            passed += 1
        }
        #expect(passed == 256)
        lane.credit(2 * UInt64(DoorLimits.window.lowerBound))
        #expect(next(&lane)?.kind == .bulk)
        // The first unreliable frame has been passed as often.
        #expect(next(&lane)?.kind == .unreliable)
        #expect(next(&lane)?.kind == .control)
    }

    @Test func `The longest bulk message goes when half of the least window is left`() {
        let window = DoorLimits.window.lowerBound
        var lane = SendLane(session: Self.session, window: window)
        lane.sent(Self.frame(.begin, 0, bytes: Int(window / 2) - 64))
        lane.put(Self.frame(.bulk, 0, bytes: DoorLimits.framePayload))
        #expect(next(&lane)?.kind == .bulk)
    }

    // R80
    @Test func `An end goes once the rest has, or at once in its place`() {
        var lane = SendLane(session: Self.session, window: DoorLimits.defaultWindow)
        lane.put(Self.frame(.bulk, 0))
        lane.put(.end(session: Self.session))
        lane.put(Self.frame(.control, 1))
        #expect(next(&lane)?.kind == .bulk)
        #expect(next(&lane) == .end(session: Self.session))
        #expect(next(&lane) == nil && lane.isEnded)

        var other = SendLane(session: Self.session, window: DoorLimits.defaultWindow)
        other.put(Self.frame(.control, 0))
        other.put(Self.frame(.bulk, 0))
        other.abandon()
        #expect(other.waitingCost == 0)
        #expect(next(&other) == .end(session: Self.session))
        #expect(!other.isReady && other.isEnded)
    }

    // R84
    @Test func `A full queue costs the unreliable frame that finds it full, and that one alone`() {
        var lane = SendLane(session: Self.session, window: DoorLimits.defaultWindow)
        for mark in 0..<SendLane.unreliableFrames { #expect(put(&lane, Self.frame(.unreliable, mark))) }
        #expect(!put(&lane, Self.frame(.unreliable, 1_000)))
        #expect(next(&lane) == Self.frame(.unreliable, 0))
        #expect(put(&lane, Self.frame(.unreliable, 2_000)))
        #expect(lane.dropped == 1)
        var last: TunnelFrame?
        while let frame = lane.next() { last = frame }
        #expect(last == Self.frame(.unreliable, 2_000))
    }
}
