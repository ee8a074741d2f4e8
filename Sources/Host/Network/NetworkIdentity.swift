internal import Synchronization
internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// Which network the machine is on, as a key that says nothing about it (R57, R58), and when carriers are to be woken.
final class NetworkIdentity: Sendable {
    private struct State {
        var attachment = NetworkAttachment()
        var keys: [String: String] = [:]
    }

    private let loop: EventLoop
    private let watch: NetworkWatch?
    private let hash: KeyedHash
    private let memory: (any NetworkMemory)?
    private let log: Log
    private let state = Mutex(State())

    private init(_ watch: NetworkWatch?, loop: EventLoop, hash: KeyedHash, memory: (any NetworkMemory)?, log: Log) {
        self.watch = watch
        self.loop = loop
        self.hash = hash
        self.memory = memory
        self.log = log
    }

    /// Starts to watch the machine's routes. Where that cannot be done, no network has a key and nothing is remembered.
    static func watch(
        loop: EventLoop, hash: KeyedHash = NetworkKey.temporary(), memory: (any NetworkMemory)? = nil, log: Log
    ) async -> NetworkIdentity {
        let log = log.named("host")
        var watch: NetworkWatch?
        do {
            watch = try await NetworkWatch.start(loop: loop)
        } catch {
            log.info("networks are not told apart, and what wins is not remembered: \(error)")
        }
        return NetworkIdentity(watch, loop: loop, hash: hash, memory: memory, log: log)
    }

    /// The key of the current network; nil while there is none that can be told apart.
    var key: String? {
        guard let watch else { return nil }
        let name = watch.current.name
        return state.withLock { state in
            // Before anybody dials under the name that follows.
            switch state.attachment.see(name) {
            case .began(let stay, let vague): tell(stay, vague) { $0.began($1, under: $2) }
            case .recognized(let stay, let full): tell(stay, full) { $0.tellApart($1, as: $2) }
            case nil: break
            }
            guard let name = state.attachment.name else { return nil }
            if let key = state.keys[name] { return key }
            let key = hash.name(name)
            state.keys = key.map { [name: $0] } ?? [:]
            return key
        }
    }

    /// Tells the memory something of two names, which it knows by their keys.
    private func tell(_ one: String, _ other: String, _ body: (any NetworkMemory, String, String) -> Void) {
        guard let memory, let one = hash.name(one), let other = hash.name(other) else { return }
        body(memory, one, other)
    }

    /// Calls `wake` on every edge on which carriers should look around, until the task is cancelled (R60).
    ///
    /// - Parameter live: the addresses of this machine that sessions stand on.
    func watch(
        live: @escaping @Sendable () -> Set<SocketAddress.Address>, wake: @escaping @Sendable () async -> Void
    ) async {
        await withDiscardingTaskGroup { group in
            group.addTask { [self] in await watchNetwork(live: live, wake: wake) }
            group.addTask { [loop, log] in
                await ClockGap.watch(loop, awake: { loop.timeAwake() }) { reason in
                    log.info("\(reason)")
                    await wake()
                }
            }
        }
    }

    private func watchNetwork(
        live: @escaping @Sendable () -> Set<SocketAddress.Address>, wake: @escaping @Sendable () async -> Void
    ) async {
        guard let watch else { return }
        var rule = WakeRule(watch.current)
        var wasOnline = watch.current.isOnline
        await withDiscardingTaskGroup { group in
            for await state in watch.changes {
                // Names the network, also where nobody dials.
                _ = key
                if wasOnline, !state.isOnline { log.info("the network is gone") }
                wasOnline = state.isOnline
                guard let reason = rule.see(state, live: live()) else { continue }
                log.info("\(reason)")
                // What a wake waits for must not hide the next edge.
                group.addTask { await wake() }
            }
        }
    }

    /// Stops watching.
    func stop() {
        watch?.stop()
    }
}
