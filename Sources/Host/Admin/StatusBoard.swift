internal import Synchronization
internal import TransportKit

/// What a host that runs can be asked about: what it has bound, and since when its carriers are as they are.
final class StatusBoard: Sendable {
    /// What is known of a carrier.
    struct CarrierNote: Sendable {
        var state: CarrierState
        /// Since when it has this state.
        var since: WallTime
        /// How the last attempt failed, until one succeeds: a dial that goes on for seconds must not hide it.
        var failure: Close?
    }

    private struct State {
        var carriers: [String: CarrierNote] = [:]
        var listeners: [BoundListener] = []
        var forwards: [(plan: ForwardPlan, forward: ListeningForward?)] = []
    }

    private let state = Mutex(State())
    private let time: any TimeSource
    /// When the host was made.
    let started: Instant
    private let startedAt: WallTime

    init(time: any TimeSource) {
        self.time = time
        started = time.now()
        startedAt = time.wallNow()
    }

    func bound(_ listeners: [BoundListener], _ forwards: [(ForwardPlan, ListeningForward?)]) {
        state.withLock { state in
            state.listeners = listeners
            state.forwards = forwards.map { (plan: $0, forward: $1) }
        }
    }

    /// An optional forward has got its port.
    func bound(_ forward: ListeningForward, _ plan: ForwardPlan) {
        state.withLock { state in
            let index = state.forwards.firstIndex { $0.forward == nil && "\($0.plan.listen)" == "\(plan.listen)" }
            if let index { state.forwards[index].forward = forward }
        }
    }

    /// Notes when a carrier changes, until it is closed or the task is cancelled.
    func follow(_ name: String, _ states: CarrierStates) async {
        for await latest in states {
            let now = time.wallNow()
            state.withLock { state in
                var note = CarrierNote(state: latest, since: now, failure: state.carriers[name]?.failure)
                switch latest {
                case .waiting(_, let close): note.failure = close
                case .open, .closed: note.failure = nil
                case .idle, .connecting: break
                }
                state.carriers[name] = note
            }
        }
    }

    /// The state of a carrier, and `latest` where nobody follows it.
    func note(of name: String, _ latest: CarrierState) -> CarrierNote {
        state.withLock { $0.carriers[name] } ?? CarrierNote(state: latest, since: startedAt)
    }

    var forwards: [StatusReport.Forward] {
        state.withLock { $0.forwards }.map { plan, forward in
            StatusReport.Forward(
                listen: forward.map { "tcp://\($0.localAddress)" } ?? "\(plan.listen)", to: "\(plan.to)",
                carrier: plan.carrier, state: forward == nil ? "port taken" : "listening",
                open: forward?.tally.open ?? 0, total: forward?.tally.total ?? 0,
                failed: forward?.tally.failures ?? 0)
        }
    }

    var listeners: [StatusReport.Listener] {
        state.withLock { $0.listeners }.map { listener in
            StatusReport.Listener(
                name: listener.plan.name, url: "\(listener.endpoint)",
                transports: listener.plan.transports.map(\.name.rawValue), sessions: listener.tally.open,
                total: listener.tally.total)
        }
    }
}
