import Testing
import TransportKit

@testable import RelayCarrier

/// The client's rules, without a socket and without a clock (R101, R104, R106).
@Suite struct RelayClientTests {
    private let wall = WallTime.epoch(100)
    private var client = RelayClient(RelaySettings())

    private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

    private func remote(_ code: CloseCode, _ reason: String = "") -> Close {
        Close(code, reason: reason, origin: .remote)
    }

    private mutating func join() {
        #expect(client.wanted(now: at(0), wall: wall) == [.dial(epoch: 100)])
        client.opened()
    }

    // R101
    @Test mutating func `A session begins with the peer and not with the socket`() {
        join()
        #expect(client.deadline == nil)
        #expect(client.heard("hello") == [])
        #expect(client.heard("ready") == [.ready])
        #expect(client.heard("ready") == [])
        let gone = client.heard("gone")
        guard case .end(let close)? = gone.first, gone.count == 1 else {
            Issue.record("\(gone)")
            return
        }
        #expect(close.code == .nobodyThere)
        // The socket stays for the next session.
        #expect(client.wanted(now: at(9), wall: wall) == [])
        #expect(client.heard("gone") == [])
        #expect(client.heard("ready") == [.ready])
        #expect(client.wanted(now: at(9), wall: wall) == [.ready])
    }

    @Test mutating func `A failed attempt is told, and the next waits for its time`() {
        join()
        let full = remote(.busy, "full")
        #expect(client.ended(full, now: at(10), wall: wall, random: { 1 }) == [.end(full), .fail(full)])
        #expect(client.deadline == at(510))
        #expect(client.wanted(now: at(20), wall: wall) == [])
        #expect(client.passed(now: at(509), wall: wall) == [])
        #expect(client.passed(now: at(510), wall: wall) == [.dial(epoch: 100)])
    }

    @Test mutating func `Nothing is dialled after a pause that nobody waits for`() {
        join()
        _ = client.ended(remote(.busy), now: at(10), wall: wall, random: { 1 })
        #expect(client.passed(now: at(510), wall: wall) == [])
        #expect(client.deadline == nil)
        #expect(client.wanted(now: at(600), wall: wall) == [.dial(epoch: 100)])
        #expect(client.unwanted() == [.hangUp])
        #expect(client.unwanted() == [])
    }

    // R104: nobody need hear of it.
    @Test mutating func `A wrong epoch and its turn are its own affair`() {
        join()
        let wrong = remote(.displaced, "101")
        #expect(client.ended(wrong, now: at(1), wall: wall, random: { 1 }) == [.end(wrong), .dial(epoch: 101)])
        client.opened()
        let turned = remote(.epochTurned, "100")
        #expect(client.ended(turned, now: at(2), wall: wall, random: { 0.5 }) == [.end(turned)])
        #expect(client.deadline == at(1502))
        #expect(client.passed(now: at(1502), wall: wall) == [.dial(epoch: 100)])
        client.opened()
        for _ in 0..<2 {
            #expect(client.ended(wrong, now: at(1600), wall: wall, random: { 1 }).last == .dial(epoch: 101))
            client.opened()
        }
        #expect(client.ended(wrong, now: at(1700), wall: wall, random: { 1 }) == [.end(wrong), .fail(wrong)])
    }

    // R106, R61
    @Test mutating func `A wake dials afresh unless a dial is young`() {
        #expect(client.woken(now: at(0), wall: wall) == [])
        join()
        #expect(client.woken(now: at(999), wall: wall) == [])
        _ = client.heard("ready")
        let actions = client.woken(now: at(1000), wall: wall)
        #expect(actions.count == 3)
        #expect(actions.first == .hangUp)
        #expect(actions.last == .dial(epoch: 100))
        #expect(client.woken(now: at(1500), wall: wall) == [])
        #expect(client.woken(now: at(2000), wall: wall) == [.hangUp, .dial(epoch: 100)])
        // A pause is cut short, and the attempts are counted anew.
        for _ in 0..<6 {
            _ = client.ended(remote(.busy), now: at(3000), wall: wall, random: { 1 })
            _ = client.wanted(now: at(900_000), wall: wall)
        }
        _ = client.ended(remote(.busy), now: at(900_000), wall: wall, random: { 1 })
        #expect(client.wanted(now: at(900_001), wall: wall) == [])
        #expect(client.woken(now: at(900_002), wall: wall) == [.dial(epoch: 100)])
        #expect(client.failures == 0)
    }

    @Test mutating func `What comes late is ignored`() {
        #expect(client.heard("ready") == [])
        #expect(client.ended(remote(.busy), now: at(1), wall: wall, random: { 1 }) == [])
        client.opened()
        #expect(client.heard("ready") == [])
        #expect(client.wanted(now: at(0), wall: wall) == [.dial(epoch: 100)])
    }
}
