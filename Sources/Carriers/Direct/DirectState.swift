internal import Synchronization
internal import TransportKit

/// What a direct carrier shows and what its sessions tell it, from any thread.
final class DirectState: Sendable {
    private struct WeakSocket {
        weak var socket: DirectSocket?
    }

    private struct Inner {
        var reports: [(id: UInt64, report: EstablishmentReport)] = []
        var sockets: [WeakSocket] = []
        var openCount = 0
        var openingCount = 0
    }

    let states = CarrierStateSource()
    private let inner = Mutex(Inner())
    private let reportLimit = 16

    var reports: [EstablishmentReport] { inner.withLock { $0.reports.map(\.report) } }

    /// The sockets that are in somebody's hands.
    var sockets: [DirectSocket] { inner.withLock { $0.sockets.compactMap(\.socket) } }

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
        inner.withLock { $0.openingCount += 1 }
        states.set(.connecting(attempt: attempt))
    }

    func endOpening() {
        let isIdle = inner.withLock { inner in
            inner.openingCount -= 1
            return inner.openingCount == 0 && inner.openCount == 0
        }
        if isIdle { states.set(.idle) }
    }

    func add(_ socket: DirectSocket) {
        inner.withLock { inner in
            inner.sockets.removeAll { $0.socket == nil }
            inner.sockets.append(WeakSocket(socket: socket))
            inner.openCount += 1
        }
    }

    /// Says that a socket is in somebody's hands.
    func show(_ socket: DirectSocket) {
        let path = CarrierPath(
            carrier: "direct", transport: socket.info.transport, remoteAddress: socket.info.remoteAddress)
        states.set(.open(path))
    }

    func sessionEnded() {
        let isIdle = inner.withLock { inner in
            inner.openCount -= 1
            inner.sockets.removeAll { $0.socket?.watch.hasEnded ?? true }
            return inner.openingCount == 0 && inner.openCount == 0
        }
        if isIdle { states.set(.idle) }
    }
}
