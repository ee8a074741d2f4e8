internal import Synchronization
internal import TransportKit

/// What a carrier shows, and its sessions that somebody holds. Any thread may tell it.
final class NoiseState: Sendable {
    private struct WeakSocket {
        weak var socket: NoiseSocket?
    }

    private struct Inner {
        var sockets: [WeakSocket] = []
        var openCount = 0
        var openingCount = 0
    }

    let source = CarrierStateSource()
    private let inner = Mutex(Inner())

    var sockets: [NoiseSocket] { inner.withLock { $0.sockets.compactMap(\.socket) } }

    func beginOpening() {
        inner.withLock { $0.openingCount += 1 }
        source.set(.connecting(attempt: 1))
    }

    func endOpening() {
        let isIdle = inner.withLock { inner in
            inner.openingCount -= 1
            return inner.openingCount == 0 && inner.openCount == 0
        }
        if isIdle { source.set(.idle) }
    }

    func add(_ socket: NoiseSocket, path: CarrierPath) {
        inner.withLock { inner in
            inner.sockets.removeAll { $0.socket == nil }
            inner.sockets.append(WeakSocket(socket: socket))
        }
        source.set(.open(path))
    }

    func sessionBegan() {
        inner.withLock { $0.openCount += 1 }
    }

    func sessionEnded() {
        let isIdle = inner.withLock { inner in
            inner.openCount -= 1
            return inner.openingCount == 0 && inner.openCount == 0
        }
        if isIdle { source.set(.idle) }
    }
}
