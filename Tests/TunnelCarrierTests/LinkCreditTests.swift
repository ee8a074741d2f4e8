import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// What a receiver gives back, what a link says of itself, and which sessions have ended.
@Suite struct LinkCreditTests {
    @Test func `A peer may send its window and no more, and gets back what was passed on by halves`() {
        var credit = ReceiveCredit(window: 200_000)
        func arrived(_ cost: UInt64) -> Bool { credit.arrived(cost) }
        func passedOn(_ cost: UInt64) -> UInt64? { credit.passedOn(cost) }
        #expect(arrived(150_000))
        #expect(!arrived(50_001))
        #expect(arrived(50_000))
        #expect(passedOn(99_999) == nil)
        #expect(passedOn(1) == 300_000)
        #expect(credit.held == 100_000)
        #expect(arrived(100_000))
        #expect(!arrived(1))
    }

    @Test func `1,000 random frames go through a lane and its credit, and neither stands still nor sends too much`() {
        var random = SeededGenerator.announced()
        let window = UInt32.random(in: DoorLimits.window.lowerBound...500_000, using: &random)
        let session = TunnelSessionID(rawValue: 1)
        var lane = SendLane(session: session, window: window)
        var credit = ReceiveCredit(window: window)
        var held: [UInt64] = []
        var (put, arrived) = (0, 0)
        while arrived < 1_000 {
            if put < 1_000, Bool.random(using: &random) {
                let kind: TunnelFrame.Kind = Bool.random(using: &random) ? .bulk : .control
                let bytes = Bool.random(using: &random) ? DoorLimits.framePayload : 1
                lane.put(TunnelFrame(kind, session: session, payload: Bytes(repeating: 0, count: bytes)))
                put += 1
            }
            if let frame = lane.next() {
                let isAllowed = credit.arrived(frame.cost)
                #expect(isAllowed)
                held.append(frame.cost)
                arrived += 1
            } else if !held.isEmpty {
                if let total = credit.passedOn(held.removeFirst()) { lane.credit(total) }
            } else {
                // With all passed on, whatever waits may go.
                #expect(!lane.isReady && lane.waitingCost == 0)
            }
        }
    }

    @Test func `The last 16 sessions that ended are known`() {
        var ended = EndedSessions<Int>()
        for key in 0..<16 { ended.insert(key) }
        ended.insert(0)
        #expect((0..<16).allSatisfy { ended.contains($0) })
        for key in 16..<40 { ended.insert(key) }
        #expect((24..<40).allSatisfy { ended.contains($0) })
        #expect(!(0..<24).contains { ended.contains($0) })
    }

    @Test func `What a link says of itself comes once, in order and whole`() throws {
        let (client, door) = (StaticPrivateKey(), StaticPrivateKey())
        var handshake = try InitiatorHandshake(key: client, peer: door.publicKey)
        let answer = try ResponderHandshake(key: door, reading: handshake.message1).answer()
        var ours = ControlSeal(try handshake.finish(reading: answer.message2), reads: .doorToClient)
        var theirs = ControlSeal(answer.begin(), reads: .clientToDoor)

        let messages = [try ours.seal(.enter), try ours.seal(.check(nonce: 7)), try ours.seal(.check(nonce: 8))]
        let sealed = try messages.map { message -> Bytes in
            guard case .sealed(let sealed) = try DoorMessage.decode(message, .clientToDoor) else {
                throw ControlSealError.sealed(.messageTooShort)
            }
            return sealed
        }
        func open(_ sealed: Bytes) throws -> DoorControl { try theirs.open(sealed) }
        #expect(throws: ControlSealError.gap(expected: 0, found: 1)) { try open(sealed[1]) }
        var changed = sealed[0]
        changed[20] ^= 1
        #expect(throws: ControlSealError.sealed(.authentication)) { try open(changed) }
        #expect(throws: ControlSealError.sealed(.messageTooShort)) { try open([1, 2, 3]) }
        #expect(try open(sealed[0]) == .enter)
        #expect(throws: ControlSealError.gap(expected: 1, found: 0)) { try open(sealed[0]) }
        #expect(try open(sealed[1]) == .check(nonce: 7))
        #expect(try open(sealed[2]) == .check(nonce: 8))
    }
}
