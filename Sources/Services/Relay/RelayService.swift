internal import RelayCarrier
public import TransportKit

/// The relay: copies ciphertext between a box and its clients in rooms whose names it cannot work out (part 2.1).
///
/// It answers on every path below its route, which must be a WebSocket's: its words are text. It keeps no handle, no address
/// and no byte longer than it needs them, and logs counts alone (R147). Its one timer runs while somebody is connected, at
/// moments that do not depend on anybody.
public actor RelayService: Service {
    private nonisolated let limits: RelayLimits
    private nonisolated let trustsProxy: Bool
    private nonisolated let executor: any SerialExecutor & TaskExecutor
    private nonisolated let time: any TimeSource
    private nonisolated let log: Log

    private var rooms: RelayRooms
    private var members: [RelayRooms.ID: RelayMember] = [:]
    private var nextID: RelayRooms.ID = 0
    private var ticking: Task<Void, Never>?
    private var lastCounts = ""

    /// Makes a relay.
    ///
    /// - Parameters:
    ///   - limits: its limits.
    ///   - trustsProxy: whether a proxy of the operator's own stands in front, whose last entry in `X-Forwarded-For` is then
    ///     the address that counts.
    ///   - executor: where it works, best the loop of its listener.
    ///   - time: the clock of its limits, and of the epochs.
    ///   - log: hears counts and nothing else.
    public init(
        limits: RelayLimits = RelayLimits(), trustsProxy: Bool = false,
        executor: any SerialExecutor & TaskExecutor, time: any TimeSource, log: Log = Log()
    ) {
        self.limits = limits
        self.trustsProxy = trustsProxy
        self.executor = executor
        self.time = time
        self.log = log.named("relay")
        rooms = RelayRooms(limits) { (0..<32).map { _ in .random(in: 0...255) } }
    }

    /// The executor it was given.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The path says which room is meant.
    public nonisolated var servesPathsBelow: Bool { true }

    /// Nothing of a peer may be logged.
    public nonisolated var keepsPeersPrivate: Bool { true }

    /// Serves one peer until either end closes.
    ///
    /// - Parameters:
    ///   - socket: the peer's; the relay has it to itself.
    ///   - target: the room.
    public func serve(_ socket: any Socket, target: Target) async {
        guard socket.info.capabilities.contains(.text) else {
            await socket.close(.unsupported, reason: "the relay speaks the WebSocket without streams alone")
            return
        }
        nextID += 1
        let id = nextID
        let member = RelayMember(socket)
        members[id] = member
        perform(
            rooms.join(id, path: target.path, from: address(of: socket), now: time.now(), wall: time.wallNow()))
        defer {
            members[id] = nil
            perform(rooms.left(id))
            if members.isEmpty { stopTicking() }
        }
        if let refusal = member.closing {
            await socket.close(refusal.code, reason: refusal.reason)
            return
        }
        startTicking()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.read(id) }
            group.addTask { await self.write(id) }
            group.addTask { await self.end(id) }
            // All of them end when the socket does.
            await group.next()
            member.close(.normal, reason: "")
        }
    }

    private nonisolated func address(of socket: any Socket) -> String {
        if trustsProxy, let forwarded = socket.info.forwardedFor { return forwarded }
        guard let address = socket.info.remoteAddress else { return "" }
        return "\(AddressKey(address))"
    }

    private func read(_ id: RelayRooms.ID) async {
        guard let member = members[id] else { return }
        do throws(Close) {
            while true {
                for message in try await member.socket.receive() {
                    perform(rooms.received(message, from: id, now: time.now()), passing: message)
                }
            }
        } catch {
            // The end of the socket is the end of the task, and of what others see of it.
            perform(rooms.left(id))
        }
    }

    private func write(_ id: RelayRooms.ID) async {
        guard let member = members[id] else { return }
        while let batch = await member.next() {
            do throws(Close) { try await member.socket.send(batch) } catch { return }
            rooms.written(Self.size(of: batch), to: id)
        }
    }

    private func end(_ id: RelayRooms.ID) async {
        // A close at once ends the call that reads, and one that writes to somebody who does not read.
        guard let member = members[id], let close = await member.mustClose() else { return }
        await member.socket.close(close.code, reason: close.reason)
    }

    /// Words count for nothing: there is one for each change of a view.
    private static func size(of batch: [Message]) -> Int {
        batch.reduce(0) { $0 + ($1.format == .binary ? $1.payload.count : 0) }
    }

    private func perform(_ actions: [RelayRooms.Action], passing message: Message? = nil) {
        for action in actions {
            switch action {
            case .word(let id, let word): members[id]?.put(.text(word.rawValue))
            case .forward(let receivers):
                guard let message else { preconditionFailure("a frame that is passed on has come") }
                for receiver in receivers { members[receiver]?.put(Message(message.payload)) }
            case .close(let id, let code, let reason): members[id]?.close(code, reason: reason)
            case .ping(let id): ping(id)
            }
        }
    }

    // MARK: - The heartbeat

    private func ping(_ id: RelayRooms.ID) {
        guard let socket = members[id]?.socket as? any PathAwareSocket else { return rooms.answered(id) }
        let limit = limits.heartbeat
        // It ends by itself within the heartbeat.
        Task(executorPreference: executor) {
            if await socket.checkPath(within: limit) { await self.answered(id) }
        }
    }

    private func answered(_ id: RelayRooms.ID) {
        rooms.answered(id)
    }

    private func startTicking() {
        guard ticking == nil else { return }
        let (time, beat) = (time, UInt64(max(limits.heartbeat.clampedNanoseconds, 1)))
        ticking = Task(executorPreference: executor) {
            while !Task.isCancelled {
                // At whole multiples: the moment says nothing about who came when.
                let next = Instant(nanoseconds: (time.now().nanoseconds / beat + 1) * beat)
                guard (try? await time.sleep(until: next)) != nil else { return }
                await self.tick()
            }
        }
    }

    private func tick() {
        perform(rooms.tick(wall: time.wallNow()))
        logCounts()
    }

    private func stopTicking() {
        ticking?.cancel()
        ticking = nil
        logCounts()
    }

    private func logCounts() {
        let counts =
            "epoch \(RelayEpoch.current(at: time.wallNow())): \(rooms.roomCount) rooms, \(rooms.socketCount) sockets, "
            + "\(rooms.frames) frames, \(rooms.bytes) bytes"
        guard counts != lastCounts else { return }
        lastCounts = counts
        log.info(counts)
    }
}
