internal import Synchronization
internal import TransportKit

/// What a direct carrier shows and what its sessions tell it, from any thread.
final class DirectState: Sendable {
    private struct Session {
        weak var socket: DirectSocket?
        /// Nil until it is in somebody's hands.
        var path: CarrierPath?
    }

    private struct Inner {
        var reports: [(id: UInt64, report: EstablishmentReport)] = []
        /// In the order in which they opened.
        var sessions: [Session] = []
        var openingCount = 0
        var attempt = 1

        var state: CarrierState {
            if openingCount > 0 { return .connecting(attempt: attempt) }
            return sessions.last { $0.path != nil }?.path.map { .open($0) } ?? .idle
        }
    }

    let states = CarrierStateSource()
    private let inner = Mutex(Inner())
    private let reportLimit = 16

    var reports: [EstablishmentReport] { inner.withLock { $0.reports.map(\.report) } }

    /// The sockets that stand, or have ended a moment ago.
    var sockets: [DirectSocket] { inner.withLock { $0.sessions.compactMap(\.socket) } }

    /// Keeps a report, or what has been added to it.
    func keep(_ report: EstablishmentReport, id: UInt64) {
        inner.withLock { inner in
            if let index = inner.reports.firstIndex(where: { $0.id == id }) {
                inner.reports[index].report = report
            } else {
                inner.reports.append((id, report))
                if inner.reports.count > reportLimit { inner.reports.removeFirst() }
            }
        }
    }

    func beginOpening(attempt: Int) {
        change { inner in
            inner.openingCount += 1
            inner.attempt = attempt
        }
    }

    func endOpening() {
        change { $0.openingCount -= 1 }
    }

    func add(_ socket: DirectSocket) {
        change { $0.sessions.append(Session(socket: socket)) }
    }

    /// Says that a socket is in somebody's hands.
    func show(_ socket: DirectSocket) {
        let path = CarrierPath(
            carrier: "direct", transport: socket.info.transport, remoteAddress: socket.info.remoteAddress)
        change { inner in
            guard let index = inner.sessions.firstIndex(where: { $0.socket === socket }) else { return }
            inner.sessions[index].path = path
        }
    }

    func sessionEnded() {
        change { $0.sessions.removeAll { $0.socket?.watch.hasEnded ?? true } }
    }

    /// Changes what is known, and shows the state that follows before anybody else changes it.
    private func change(_ body: (inout Inner) -> Void) {
        inner.withLock { inner in
            body(&inner)
            states.set(inner.state)
        }
    }
}
