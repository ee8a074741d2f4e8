/// Remembers, per network and destination, what won and what broke (R37, R48, R55).
///
/// Any thread may call it; calls must not block. The network is named by an opaque key, so that no implementation sees
/// where somebody has been (R58); with no key nothing is written and nothing is known.
public protocol PathMemory: Sendable {
    /// What is known of a path at `now`, expired entries left out.
    func history(of path: PathKey, at now: WallTime) -> PathHistory

    /// Changes what is known of a path, as one step. `body` must not call the memory.
    func change(_ path: PathKey, at now: WallTime, _ body: (inout PathHistory) -> Void)

    /// Everything that is known at `now`.
    func all(at now: WallTime) -> [PathKey: PathHistory]

    /// The path under which that one is kept: the network of a dial may have been told apart from others since. Nil where
    /// it can never be told any more which network it was; nothing is known and nothing is kept of it then.
    func kept(_ path: PathKey) -> PathKey?
}

extension PathMemory {
    /// The path itself: no network has two names.
    public func kept(_ path: PathKey) -> PathKey? { path }
}
