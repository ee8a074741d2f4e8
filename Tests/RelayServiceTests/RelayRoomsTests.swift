import RelayCarrier
import Testing
import TransportKit
import TransportKitTesting

@testable import RelayService

/// What the relay decides, without a socket and without a clock (part 2.1, R129).
@Suite struct RelayRoomsTests {
    private let wall = WallTime(seconds: 100 * RelayEpoch.seconds + 1)
    private let start = Instant.zero
    private var rooms = RelayRooms(RelayLimits()) { Array(repeating: 7, count: 32) }
    private let handle = "0f8ae5eb475acc0e97863f504ce04027"

    private func path(_ role: String, handle: String? = nil, epoch: Int64 = 100) -> String {
        "/r/\(epoch)/\(handle ?? self.handle)/\(role)"
    }

    private mutating func join(_ id: UInt64, _ role: String, from address: String? = nil) -> [RelayRooms.Action] {
        rooms.join(id, path: path(role), from: address ?? "address \(id)", now: start, wall: wall)
    }

    private mutating func frame(_ count: Int, from id: UInt64, at now: Instant = .zero) -> [RelayRooms.Action] {
        rooms.received(Message(Bytes(repeating: 1, count: count)), from: id, now: now)
    }

    // R101: the words follow the view of each peer.
    @Test mutating func `A peer hears a word when its view changes and at no other time`() {
        #expect(join(1, "app") == [])
        #expect(join(2, "app") == [])
        #expect(join(3, "box") == [.word(3, .ready), .word(1, .ready), .word(2, .ready)])
        #expect(join(4, "app") == [.word(4, .ready)])
        #expect(rooms.left(1) == [])
        #expect(rooms.left(2) == [])
        #expect(rooms.left(4) == [.word(3, .gone)])
        #expect(join(5, "app") == [.word(5, .ready), .word(3, .ready)])
        #expect(rooms.left(3) == [.word(5, .gone)])
        #expect(rooms.roomCount == 1)
        #expect(rooms.left(5) == [])
        #expect(rooms.roomCount == 0)
        #expect(rooms.left(5) == [])
    }

    @Test mutating func `The uplink reaches every stream, a stream the uplink alone`() {
        _ = join(1, "box")
        #expect(frame(5, from: 1) == [])
        _ = join(2, "app")
        _ = join(3, "app")
        _ = rooms.join(
            4, path: path("app", handle: String(repeating: "b", count: 32)), from: "x", now: start, wall: wall)
        #expect(frame(5, from: 1) == [.forward([2, 3])])
        #expect(frame(5, from: 2) == [.forward([1])])
        #expect(frame(0, from: 3) == [.forward([1])])
        #expect(frame(5, from: 4) == [])
        #expect(rooms.frames == 5)
        #expect(rooms.bytes == 20)
    }

    // The order of the checks: each case fails two in a row, and the first one is told.
    @Test mutating func `The checks come in the order of the contract`() {
        var limits = RelayLimits()
        limits.sockets = 2
        limits.attempts = 4
        limits.socketsPerAddress = 1
        limits.streamsPerRoom = 1
        rooms = RelayRooms(limits) { Array(repeating: 7, count: 32) }
        func attempt(
            _ id: UInt64, _ path: String, _ address: String, _ rooms: inout RelayRooms
        ) -> [RelayRooms.Action] {
            rooms.join(id, path: path, from: address, now: start, wall: wall)
        }
        let (good, old) = (path("box"), path("box", epoch: 99))
        #expect(attempt(1, "/nonsense/99", "a", &rooms) == [.close(1, .badTarget, reason: "join")])
        #expect(attempt(2, old, "a", &rooms) == [.close(2, .displaced, reason: "100")])
        #expect(attempt(3, good, "a", &rooms) == [])
        #expect(attempt(4, path("box", epoch: 101), "a", &rooms) == [.close(4, .displaced, reason: "100")])
        #expect(attempt(5, "/nonsense", "a", &rooms) == [.close(5, .busy, reason: "slow down")])
        #expect(attempt(6, good, "b", &rooms) == [.close(6, .busy, reason: "uplink")])
        #expect(attempt(7, path("app"), "b", &rooms) == [.word(7, .ready), .word(3, .ready)])
        // The ceiling of the process comes before everything.
        for (id, path) in zip(UInt64(8)..., ["/nonsense", old, good]) {
            #expect(attempt(id, path, "a", &rooms) == [.close(id, .busy, reason: "full")])
        }
        _ = rooms.left(3)
        // Sockets per address come before the room.
        #expect(attempt(20, path("app"), "b", &rooms) == [.close(20, .busy, reason: "full")])
        #expect(attempt(21, path("app"), "c", &rooms) == [.close(21, .busy, reason: "streams")])
        #expect(rooms.socketCount == 1)
    }

    @Test mutating func `A room takes four streams and one uplink, an address sixteen sockets`() {
        for id in UInt64(1)...4 { #expect(join(id, "app") == []) }
        #expect(join(5, "app") == [.close(5, .busy, reason: "streams")])
        #expect(join(6, "box").count == 5)
        #expect(join(7, "box") == [.close(7, .busy, reason: "uplink")])
        #expect(frame(1, from: 6) == [.forward([1, 2, 3, 4])])
        for id in UInt64(10)..<26 {
            let own = String(repeating: "0", count: 30) + String(id)
            #expect(rooms.join(id, path: path("box", handle: own), from: "one", now: start, wall: wall) == [])
        }
        #expect(
            rooms.join(30, path: path("app"), from: "one", now: start, wall: wall)
                == [.close(30, .busy, reason: "full")])
        _ = rooms.left(10)
        _ = rooms.left(1)
        #expect(rooms.join(31, path: path("app"), from: "one", now: start, wall: wall) == [.word(31, .ready)])
    }

    @Test mutating func `The process takes 4096 sockets`() {
        for id in UInt64(0)..<4096 {
            let digits = String(id)
            let handle = String(repeating: "0", count: 32 - digits.count) + digits
            #expect(
                rooms.join(id, path: path("app", handle: handle), from: "a\(id)", now: .zero + .seconds(id), wall: wall)
                    == [])
        }
        #expect(join(5000, "app") == [.close(5000, .busy, reason: "full")])
        _ = rooms.left(17)
        #expect(rooms.join(5001, path: path("app"), from: "a", now: .zero + .seconds(9999), wall: wall) == [])
    }

    // The claim of a box is consumed; every other text ends its sender.
    @Test mutating func `Text is for the claim of a box alone`() {
        _ = join(1, "box")
        _ = join(2, "app")
        let claim = Message.text("deadman \(handle)")
        #expect(rooms.received(claim, from: 1, now: start) == [])
        #expect(rooms.received(claim, from: 2, now: start) == [.close(2, .badTarget, reason: "text"), .word(1, .gone)])
        #expect(rooms.received(.text("deadman"), from: 1, now: start) == [.close(1, .badTarget, reason: "text")])
        #expect(rooms.received(.text("ready"), from: 1, now: start) == [])
    }

    @Test mutating func `A frame of 65,536 bytes passes, and one byte more ends its sender`() {
        _ = join(1, "box")
        _ = join(2, "app")
        #expect(frame(65_536, from: 2) == [.forward([1])])
        #expect(frame(65_537, from: 2) == [.close(2, .badTarget, reason: "frame"), .word(1, .gone)])
    }

    @Test mutating func `240 frames at once and 60 a second pass, and one more ends with rate`() {
        _ = join(1, "box")
        _ = join(2, "app")
        for _ in 0..<240 { #expect(frame(1, from: 1) == [.forward([2])]) }
        let second = start + .seconds(1)
        for _ in 0..<60 { #expect(frame(1, from: 1, at: second) == [.forward([2])]) }
        #expect(
            frame(1, from: 1, at: second + .milliseconds(16)) == [.close(1, .busy, reason: "rate"), .word(2, .gone)])
        // It is each socket's own.
        #expect(frame(1, from: 2, at: second) == [])
    }

    @Test mutating func `4 MiB at once and 512 KiB a second pass, and one byte more ends with rate`() {
        _ = join(1, "box")
        for _ in 0..<64 { #expect(frame(65_536, from: 1) == []) }
        let second = start + .seconds(1)
        for _ in 0..<8 { #expect(frame(65_536, from: 1, at: second) == []) }
        #expect(frame(1, from: 1, at: second) == [.close(1, .busy, reason: "rate")])
    }

    // The fault of a send queue without a bound.
    @Test mutating func `Who lets 8 MiB wait is ended, and the others get their frames`() {
        var limits = RelayLimits()
        limits.byteBurst = 64 << 20
        rooms = RelayRooms(limits) { Array(repeating: 7, count: 32) }
        _ = join(1, "box")
        _ = join(2, "app")
        _ = join(3, "app")
        for _ in 0..<128 {
            #expect(frame(65_536, from: 1) == [.forward([2, 3])])
            rooms.written(65_536, to: 3)
        }
        #expect(frame(1, from: 1) == [.forward([3]), .close(2, .busy, reason: "slow reader")])
        rooms.written(65_536, to: 2)
        #expect(frame(1, from: 1) == [.forward([3])])
    }

    @Test mutating func `Who does not answer a ping is reaped at the next heartbeat`() {
        _ = join(1, "box")
        _ = join(2, "app")
        #expect(rooms.tick(wall: wall) == [.ping(1), .ping(2)])
        rooms.answered(2)
        #expect(rooms.tick(wall: wall) == [.close(1, .tooSlow, reason: "no answer"), .word(2, .gone), .ping(2)])
        // The uplink's place is free now.
        #expect(join(3, "box").count == 2)
    }

    // The faults that everybody turned over at once, and that rooms of the new epoch were closed.
    @Test mutating func `Rooms turn over one by one within five minutes`() {
        let handles = ["0000", "4000", "8000", "c000", "ffff"].map { $0 + String(repeating: "a", count: 28) }
        for (id, handle) in zip(UInt64(1)..., handles) {
            #expect(rooms.join(id, path: path("box", handle: handle), from: "\(id)", now: start, wall: wall) == [])
        }
        let turn = 101 * RelayEpoch.seconds
        // One of the new epoch stays.
        let new = path("box", handle: handles[0], epoch: 101)
        #expect(rooms.join(9, path: new, from: "9", now: start, wall: WallTime(seconds: turn)) == [])
        var closed: [Int64: [UInt64]] = [:]
        for second in stride(from: Int64(0), through: 300, by: 15) {
            for id in UInt64(1)...9 { rooms.answered(id) }
            for action in rooms.tick(wall: WallTime(seconds: turn + second)) {
                guard case .close(let id, let code, let reason) = action else { continue }
                #expect(code == .epochTurned)
                #expect(reason == "101")
                closed[second, default: []].append(id)
            }
        }
        #expect(closed == [0: [1], 75: [2], 150: [3], 225: [4], 300: [5]])
        #expect(rooms.contains(9))
        // The machine slept over an epoch: what is left of earlier ones is late already.
        rooms.answered(9)
        let later = rooms.tick(wall: WallTime(seconds: 103 * RelayEpoch.seconds))
        #expect(later == [.close(9, .epochTurned, reason: "103")])
    }

    @Test mutating func `A clock that is set back turns nothing over`() {
        _ = join(1, "box")
        #expect(rooms.tick(wall: WallTime(seconds: 99 * RelayEpoch.seconds)) == [.ping(1)])
    }

    // Whatever is said in whatever order, the relay's counts and its rooms agree with a plain record.
    @Test mutating func `Counts and views agree with a plain record`() {
        var random = SeededGenerator.announced()
        var limits = RelayLimits()
        limits.attempts = .max
        rooms = RelayRooms(limits) { Array(repeating: 7, count: 32) }
        let handles = (0..<3).map { String(repeating: "\($0)", count: 32) }
        var record: [UInt64: (handle: Int, role: String)] = [:]
        var view: [UInt64: Bool] = [:]
        for id in UInt64(1)...3000 {
            var actions: [RelayRooms.Action] = []
            if Bool.random(using: &random) || record.isEmpty {
                let (handle, role) = (
                    Int.random(in: 0..<3, using: &random), Bool.random(using: &random) ? "box" : "app"
                )
                let others = record.values.filter { $0.handle == handle && $0.role == role }.count
                actions = rooms.join(
                    id, path: path(role, handle: handles[handle]), from: "\(id)", now: start, wall: wall)
                #expect(rooms.contains(id) == (others < (role == "box" ? 1 : 4)))
                if rooms.contains(id) {
                    record[id] = (handle, role)
                    view[id] = false
                }
            } else if let id = record.keys.sorted().randomElement(using: &random) {
                actions = rooms.left(id)
                record[id] = nil
                view[id] = nil
            }
            for action in actions {
                guard case .word(let id, let word) = action else { continue }
                #expect(view[id] != (word == .ready), "a word without a change")
                view[id] = word == .ready
            }
            for (id, peer) in record {
                let sees = record.values.contains { $0.handle == peer.handle && $0.role != peer.role }
                #expect(view[id] == sees)
            }
            #expect(rooms.socketCount == record.count)
            #expect(rooms.roomCount == Set(record.values.map(\.handle)).count)
        }
    }
}
