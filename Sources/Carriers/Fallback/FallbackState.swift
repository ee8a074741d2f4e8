internal import Synchronization
internal import TransportKit

/// The state machine of a fallback, its sessions, and what it shows. Any thread may tell it.
final class FallbackState: Sendable {
    private struct Session {
        weak var socket: FallbackSocket?
        /// Nil until it is in somebody's hands.
        var path: CarrierPath?
    }

    private struct Inner {
        var machine: FallbackMachine
        /// In the order in which they opened.
        var sessions: [Session] = []
        var openingCount = 0
        var takeover: FallbackTakeover?
        var whenChanged: @Sendable () -> Void = {}

        var state: CarrierState {
            if openingCount > 0 { return .connecting(attempt: 1) }
            return sessions.last { $0.path != nil }?.path.map { .open($0) } ?? .idle
        }
    }

    let states = CarrierStateSource()
    let names: (primary: String, secondary: String)
    private let time: any TimeSource
    private let log: Log
    private let inner: Mutex<Inner>

    init(_ machine: FallbackMachine, names: (primary: String, secondary: String), time: any TimeSource, log: Log) {
        self.names = names
        self.time = time
        self.log = log
        inner = Mutex(Inner(machine: machine))
    }

    var phase: FallbackMachine.Phase { inner.withLock { $0.machine.phase } }
    var probe: FallbackMachine.Probe { inner.withLock { $0.machine.probe } }
    var deadline: Instant? { inner.withLock { $0.machine.deadline } }
    var takeover: FallbackTakeover? { inner.withLock { $0.takeover } }
    var sockets: [FallbackSocket] { inner.withLock { $0.sessions.compactMap(\.socket) } }

    /// Who hears that there is something to do: a deadline has moved, or the secondary takes over.
    func whenChanged(_ body: @escaping @Sendable () -> Void) { inner.withLock { $0.whenChanged = body } }

    /// Tells the machine what has happened.
    @discardableResult
    func tell<Answer>(_ body: (inout FallbackMachine, Instant) -> Answer) -> Answer {
        let now = time.now()
        let (answer, before, after, takeover, whenChanged) = inner.withLock { inner in
            let before = inner.machine
            let answer = body(&inner.machine, now)
            let after = inner.machine
            if case .primary = before.phase, case .leaving(let reason) = after.phase {
                inner.takeover = FallbackTakeover(
                    from: names.primary, to: names.secondary, time: time.wallNow(), reason: reason)
            } else if case .secondary = before.phase, case .primary = after.phase {
                inner.takeover = nil
            }
            return (answer, before, after, inner.takeover, inner.whenChanged)
        }
        report(before, after, takeover, now)
        if before.phase != after.phase || before.probe != after.probe || before.deadline != after.deadline {
            whenChanged()
        }
        return answer
    }

    private func report(
        _ before: FallbackMachine, _ after: FallbackMachine, _ takeover: FallbackTakeover?, _ now: Instant
    ) {
        if before.phase != after.phase, case .leaving = after.phase, let takeover {
            log.warning("\(takeover)")
        }
        if case .secondary = before.phase, case .primary = after.phase {
            log.info("\(names.primary) takes over from \(names.secondary) again")
        }
        if !before.hasEverCarried, after.hasEverCarried { log.info("\(names.primary) carries") }
        guard case .primary = after.phase, before.window != after.window else { return }
        switch (before.window, after.window) {
        case (_, .recovery(let until)):
            log.debug("\(names.primary) has \((until - now).inWords) to carry again")
        case (.recovery, .none) where after.isCarrying:
            log.debug("\(names.primary) carries again")
        case (_, .none), (_, .firstAnswer):
            break
        }
    }

    // MARK: - What it shows

    func beginOpening() { change { $0.openingCount += 1 } }

    func endOpening() { change { $0.openingCount -= 1 } }

    func add(_ socket: FallbackSocket, path: CarrierPath) {
        change { $0.sessions.append(Session(socket: socket, path: path)) }
    }

    func remove(_ id: UInt64) {
        change { $0.sessions.removeAll { $0.socket?.id ?? id == id } }
    }

    /// Changes what is known, and shows the state that follows before anybody else changes it.
    private func change(_ body: (inout Inner) -> Void) {
        inner.withLock { inner in
            body(&inner)
            states.set(inner.state)
        }
    }
}
