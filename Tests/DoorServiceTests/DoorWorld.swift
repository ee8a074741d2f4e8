import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// A door's table with scripted clients and boxes around it, in simulated time.
final class DoorWorld {
    let keys: [StaticPrivateKey]
    var table: DoorTable
    var now = Instant(nanoseconds: 1_000_000_000)
    /// With what the door has closed each link.
    var closes: [UInt64: CloseCode] = [:]
    var counters: [String: Int] = [:]
    var woken: Set<UInt64> = []

    init(options: DoorOptions = DoorOptions(), homes: Set<HomeID>? = nil, keys: Int = 1) {
        self.keys = (0..<keys).map { _ in StaticPrivateKey() }
        table = DoorTable(keys: self.keys, options: options, directory: ListedHomes(homes))
    }

    func open(_ leg: DoorLeg, from address: AddressKey? = nil) -> UInt64? {
        let id = table.opened(leg, address: address, now: now)
        settle()
        return id
    }

    func send(_ bytes: Bytes, delivery: Delivery = .control, on link: UInt64) {
        table.received(Message(bytes, delivery: delivery), on: link, now: now)
        settle()
    }

    func end(_ link: UInt64) {
        table.ended(link, now: now)
        settle()
    }

    /// What the link sends until nothing more may go.
    func take(_ link: UInt64) -> [Message] {
        var all: [Message] = []
        while true {
            let batch = table.next(link, now: now)
            settle()
            if batch.isEmpty { return all }
            all += batch
        }
    }

    /// Moves time, stopping wherever something is due.
    func advance(_ duration: Duration) {
        let end = now + duration
        while let deadline = table.deadline, deadline <= end {
            now = max(now, deadline)
            table.passed(now: now)
            settle()
        }
        now = end
    }

    private func settle() {
        for effect in table.takeEffects() {
            switch effect {
            case .wake(let link): woken.insert(link)
            case .close(let link, let code, _):
                #expect(closes[link] == nil, "a link is closed once")
                closes[link] = code
            case .log: break
            case .count(let name, let amount), .gauge(let name, let amount): counters[name, default: 0] += amount
            }
        }
        for (name, amount) in table.takeCounts() { counters[name, default: 0] += amount }
    }

    /// Whether nothing is left of anybody.
    var isEmpty: Bool {
        table.links.isEmpty && table.homes.isEmpty && table.sessions.isEmpty && table.timed.isEmpty
            && table.unproved == 0 && table.waiting == 0 && table.reserved == 0 && table.limits.count == 0
            && counters.filter {
                ["door.links.app", "door.links.box", "door.sessions", "door.waiting"].contains($0.key)
            }
            .values.allSatisfy { $0 == 0 }
    }
}
