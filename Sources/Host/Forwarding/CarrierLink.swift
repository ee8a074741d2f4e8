internal import Synchronization
internal import TransportIO
internal import TransportKit

/// The session of a carrier that forwards open their streams on, kept open for as long as it runs (B25).
///
/// A ``/TransportKit/Link`` learns from its users that a session has ended. Between two forwarded connections there is no
/// user, so this one waits for messages all the time: the next session is then open before somebody needs it.
final class CarrierLink: SessionSource {
    private let link: Link
    private let held = Mutex<(any Socket)?>(nil)

    /// Makes a link; it opens nothing before ``run()``.
    init(_ carrier: any Carrier, name: String, loop: EventLoop, log: Log) {
        link = Link(carrier, name: name, executor: loop, time: loop, log: log)
    }

    /// Keeps a session open until the task is cancelled.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [link] in await link.run() }
            group.addTask { [self] in await watch() }
            await group.next()
            group.cancelAll()
        }
    }

    /// What the link is doing.
    var states: CarrierStates { link.states }

    var current: (any Socket)? { held.withLock { $0 } }

    func socket() async throws(Close) -> any Socket { try await link.socket() }

    /// The network has changed: dial anew without waiting (R61).
    func wake() async { await link.wake() }

    private func watch() async {
        while let socket = try? await link.socket(isUrgent: false) {
            held.withLock { $0 = socket }
            // Messages are nobody's here; what matters is their end.
            while (try? await socket.receive()) != nil {}
            held.withLock { $0 = nil }
        }
    }
}
