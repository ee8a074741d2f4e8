internal import RelayCarrier
internal import TransportKit

/// All that a relay decides: who may join, who gets which frame, and when somebody has to go (part 2.1).
///
/// No socket and no clock: what has happened and the time are handed in; what to do comes out, in order.
struct RelayRooms: Sendable {
    typealias ID = UInt64

    enum Action: Sendable, Hashable {
        case word(ID, RelayWire.Word)
        /// The frame that came is passed on, unchanged.
        case forward([ID])
        /// The member is no more; its socket ends with this.
        case close(ID, CloseCode, reason: String)
        case ping(ID)
    }

    private struct Member {
        let join: RelayJoin
        let address: String
        var frames: TokenBucket
        var bytes: TokenBucket
        /// How many bytes wait for it.
        var backlog = 0
        /// Whether it has answered since the last ping.
        var isAlive = true
    }

    private struct Room {
        var box: ID?
        var apps: [ID] = []
    }

    private struct Key: Hashable {
        let epoch: Int64
        let handle: RelayHandle
    }

    private let limits: RelayLimits
    private var slots: AttemptSlots
    private var members: [ID: Member] = [:]
    private var rooms: [Key: Room] = [:]
    private var addresses: [String: Int] = [:]
    /// Members in the order in which they joined, so that the same happens in the same order every time.
    private var order: [ID] = []
    private(set) var frames = 0
    private(set) var bytes = 0

    init(_ limits: RelayLimits, drawKey: @escaping @Sendable () -> [UInt8]) {
        self.limits = limits
        slots = AttemptSlots(limits, drawKey: drawKey)
    }

    var socketCount: Int { members.count }
    var roomCount: Int { rooms.count }

    func contains(_ id: ID) -> Bool { members[id] != nil }

    // MARK: - Joining and leaving

    /// Somebody has connected. A refusal is a `close` of that id, which is then no member.
    mutating func join(
        _ id: ID, path: String, from address: String, now: Instant, wall: WallTime
    ) -> [Action] {
        let join: RelayJoin
        do throws(Refusal) {
            join = try admit(path, from: address, now: now, wall: wall)
        } catch {
            return [.close(id, error.code, reason: error.reason)]
        }
        members[id] = Member(
            join: join, address: address,
            frames: TokenBucket(capacity: limits.frameBurst, perSecond: limits.framesPerSecond, now: now),
            bytes: TokenBucket(capacity: limits.byteBurst, perSecond: limits.bytesPerSecond, now: now))
        order.append(id)
        addresses[address, default: 0] += 1
        var room = rooms[key(join)] ?? Room()
        defer { rooms[key(join)] = room }
        switch join.role {
        case .box:
            room.box = id
            guard !room.apps.isEmpty else { return [] }
            return [.word(id, .ready)] + room.apps.map { .word($0, .ready) }
        case .app:
            room.apps.append(id)
            guard let box = room.box else { return [] }
            return [.word(id, .ready)] + (room.apps.count == 1 ? [.word(box, .ready)] : [])
        }
    }

    private struct Refusal: Error {
        let code: CloseCode
        let reason: String

        init(_ code: CloseCode, _ reason: String) {
            self.code = code
            self.reason = reason
        }
    }

    /// The checks, in the order of the wire's contract.
    private mutating func admit(
        _ path: String, from address: String, now: Instant, wall: WallTime
    ) throws(Refusal) -> RelayJoin {
        guard members.count < limits.sockets else { throw Refusal(.busy, "full") }
        guard slots.attempt(from: address, now: now) else { throw Refusal(.busy, "slow down") }
        guard let join = RelayJoin(path: path) else { throw Refusal(.badTarget, "join") }
        let epoch = RelayEpoch.current(at: wall)
        guard join.epoch == epoch else { throw Refusal(.displaced, "\(epoch)") }
        guard addresses[address, default: 0] < limits.socketsPerAddress else { throw Refusal(.busy, "full") }
        let room = rooms[key(join)]
        switch join.role {
        case .box:
            // The incumbent stays; one that is dead is reaped within two heartbeats.
            guard room?.box == nil else { throw Refusal(.busy, "uplink") }
        case .app:
            guard room?.apps.count ?? 0 < limits.streamsPerRoom else { throw Refusal(.busy, "streams") }
        }
        return join
    }

    /// A socket has ended.
    mutating func left(_ id: ID) -> [Action] {
        guard let member = members.removeValue(forKey: id) else { return [] }
        order.removeAll { $0 == id }
        addresses[member.address, default: 1] -= 1
        if addresses[member.address] == 0 { addresses[member.address] = nil }
        let key = key(member.join)
        guard var room = rooms[key] else { return [] }
        var words: [Action] = []
        switch member.join.role {
        case .box:
            room.box = nil
            words = room.apps.map { .word($0, .gone) }
        case .app:
            room.apps.removeAll { $0 == id }
            if room.apps.isEmpty, let box = room.box { words = [.word(box, .gone)] }
        }
        rooms[key] = room.box == nil && room.apps.isEmpty ? nil : room
        return words
    }

    private mutating func expel(_ id: ID, _ code: CloseCode, _ reason: String) -> [Action] {
        [.close(id, code, reason: reason)] + left(id)
    }

    private func key(_ join: RelayJoin) -> Key { Key(epoch: join.epoch, handle: join.handle) }

    // MARK: - Frames

    /// A message has come. Nothing of a frame is read but its length.
    mutating func received(_ message: Message, from id: ID, now: Instant) -> [Action] {
        guard let member = members[id] else { return [] }
        let size = message.payload.count
        guard size <= limits.frameBytes else { return expel(id, .badTarget, "frame") }
        guard members[id]?.frames.take(1, now: now) == true, members[id]?.bytes.take(size, now: now) == true else {
            return expel(id, .busy, "rate")
        }
        switch message.format {
        case .text:
            let isClaim = RelayWire.isClaim(String(validating: message.payload) ?? "")
            guard member.join.role == .box, isClaim else { return expel(id, .badTarget, "text") }
            return []
        case .binary:
            frames += 1
            bytes += size
            return forward(size, from: member)
        }
    }

    private mutating func forward(_ size: Int, from member: Member) -> [Action] {
        guard let room = rooms[key(member.join)] else { return [] }
        let receivers =
            switch member.join.role {
            case .box: room.apps
            case .app: room.box.map { [$0] } ?? []
            }
        var reached: [ID] = []
        var expelled: [Action] = []
        for receiver in receivers {
            guard let backlog = members[receiver]?.backlog, backlog + size <= limits.backlogBytes else {
                expelled += expel(receiver, .busy, "slow reader")
                continue
            }
            members[receiver]?.backlog = backlog + size
            reached.append(receiver)
        }
        return (reached.isEmpty ? [] : [.forward(reached)]) + expelled
    }

    /// So many bytes of frames have been written to a member's socket.
    mutating func written(_ size: Int, to id: ID) {
        members[id]?.backlog -= size
    }

    // MARK: - The heartbeat

    /// A member has answered a ping.
    mutating func answered(_ id: ID) {
        members[id]?.isAlive = true
    }

    /// The one timer: reaps who has not answered the last ping, pings the others, and lets rooms of an earlier epoch turn
    /// over, each at its own moment.
    mutating func tick(wall: WallTime) -> [Action] {
        let epoch = RelayEpoch.current(at: wall)
        let sinceTurn = Duration.seconds(wall.seconds - epoch * RelayEpoch.seconds)
        var actions: [Action] = []
        for id in order {
            guard let member = members[id] else { continue }
            if !member.isAlive {
                actions += expel(id, .tooSlow, "no answer")
            } else if isOver(member.join, epoch: epoch, sinceTurn: sinceTurn) {
                actions += expel(id, .epochTurned, "\(epoch)")
            } else {
                members[id]?.isAlive = false
                actions.append(.ping(id))
            }
        }
        return actions
    }

    private func isOver(_ join: RelayJoin, epoch: Int64, sinceTurn: Duration) -> Bool {
        guard join.epoch < epoch else { return false }
        // A room of an epoch before the last is late already.
        guard join.epoch == epoch - 1 else { return true }
        return sinceTurn >= limits.turnSpread * Int(join.handle.spread) / 65_536
    }
}
