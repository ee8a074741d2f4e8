internal import TransportIO
internal import TransportKit

/// Which network the machine is on, as a key that says nothing about it (R57, R58).
final class NetworkIdentity: Sendable {
    private let watch: NetworkWatch?

    private init(_ watch: NetworkWatch?) {
        self.watch = watch
    }

    /// Starts to watch the machine's routes. Where that cannot be done, no network has a key and nothing is remembered.
    static func watch(loop: EventLoop, log: Log) async -> NetworkIdentity {
        do {
            return NetworkIdentity(try await NetworkWatch.start(loop: loop))
        } catch {
            log.named("host").info("networks are not told apart, and what wins is not remembered: \(error)")
            return NetworkIdentity(nil)
        }
    }

    /// The key of the current network; nil while there is none that can be told apart.
    ///
    /// The memory it names lives in this process, and so does the secret under it: `Hasher` is seeded anew for each.
    var key: String? {
        guard let name = watch?.current.name else { return nil }
        var hasher = Hasher()
        hasher.combine(name)
        return String(UInt(bitPattern: hasher.finalize()), radix: 16)
    }

    /// Calls `body` whenever the machine has come to a network, until the task is cancelled: from none, or from another
    /// (R60).
    func changes(_ body: () async -> Void) async {
        guard let watch else { return }
        var last = watch.current.name
        for await state in watch.changes where state.name != last {
            last = state.name
            if last != nil { await body() }
        }
    }

    /// Stops watching.
    func stop() {
        watch?.stop()
    }
}
