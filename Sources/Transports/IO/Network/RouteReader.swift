internal import CLinux
internal import Glibc
internal import TransportKit

/// Lists addresses, routes and neighbours over a routing socket, and again after each announcement.
///
/// Sendable is sound: all but `first` is touched on the loop alone.
final class RouteReader: DescriptorHandler, @unchecked Sendable {
    /// Given when the first listing is complete, or has failed.
    let first = Signal()
    private(set) var state = NetworkState()
    private(set) var failure: TransportError?
    var changed: ((NetworkState) -> Void)?

    private enum Listing {
        case idle
        case addresses(sequence: UInt32)
        case routes(sequence: UInt32)
        case neighbours(sequence: UInt32)
    }

    private let descriptor: Int32
    private let loop: EventLoop
    private let interfaceName: @Sendable (UInt32) -> String?
    private var registration: Registration?
    private var relist: LoopTimer?
    private var listing = Listing.idle
    private var isStale = false
    private var listed: [RouteMessage] = []
    private var sequence: UInt32 = 0
    private var isClosed = false

    /// Announcements come in bursts.
    private static let settling: Duration = .milliseconds(50)

    init(descriptor: Int32, loop: EventLoop, interfaceName: @escaping @Sendable (UInt32) -> String?) {
        self.descriptor = descriptor
        self.loop = loop
        self.interfaceName = interfaceName
    }

    deinit {
        if !isClosed { tk_close(descriptor) }
    }

    func start() throws(TransportError) {
        registration = try loop.register(descriptor, interest: .readable, self)
        relist = loop.makeTimer { [weak self] in self?.list() }
        list()
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        registration?.cancel()
        relist?.disarm()
        tk_close(descriptor)
    }

    func ready(_ readiness: Readiness) {
        unsafe withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 8) { room in
            while !isClosed {
                let count = unsafe tk_receive(descriptor, room.baseAddress, room.count)
                if count == -Int64(EAGAIN) { return }
                guard count > 0 else {
                    // ENOBUFS: announcements were lost, so all is listed anew.
                    if count == -Int64(ENOBUFS) { listAgain() } else { fail(Int32(-count)) }
                    return
                }
                let bytes = unsafe UnsafeRawBufferPointer(rebasing: room[..<Int(count)])
                for message in unsafe RouteMessage.parse(bytes) { take(message) }
            }
        }
    }

    private func take(_ numbered: RouteMessage.Numbered) {
        switch listing {
        case .addresses(let current) where numbered.sequence == current,
            .routes(let current) where numbered.sequence == current,
            .neighbours(let current) where numbered.sequence == current:
            advance(numbered.message)
        case .idle, .addresses, .routes, .neighbours:
            if matters(numbered.message) { listAgain() }
        }
    }

    /// Neighbours come and go all the time; what counts is that a router becomes known.
    private func matters(_ message: RouteMessage) -> Bool {
        guard case .neighbour(_, let address, let link) = message else { return true }
        guard let link = link.map(NetworkState.text) else { return false }
        return state.defaultRoutes.contains { $0.gateway == address && $0.gatewayLink != link }
    }

    private func advance(_ message: RouteMessage) {
        switch (message, listing) {
        case (.address, _), (.defaultRoute, _), (.neighbour, _):
            listed.append(message)
        case (.other, _), (.done, .idle), (.failed, .idle):
            break
        case (.done, .addresses):
            sequence += 1
            listing = .routes(sequence: sequence)
            ask(1)
        case (.done, .routes):
            sequence += 1
            listing = .neighbours(sequence: sequence)
            ask(2)
        case (.done, .neighbours):
            finish()
        case (.failed, .addresses), (.failed, .routes), (.failed, .neighbours):
            listing = .idle
            listAgain()
        }
    }

    private func list() {
        guard !isClosed, case .idle = listing else { return }
        isStale = false
        listed = []
        sequence += 1
        listing = .addresses(sequence: sequence)
        ask(0)
    }

    private func ask(_ what: Int32) {
        let result = tk_route_dump(descriptor, what, sequence)
        if result < 0 { fail(-result) }
    }

    private func finish() {
        listing = .idle
        let state = NetworkState(listed, interfaceName: interfaceName)
        listed = []
        if state != self.state {
            self.state = state
            changed?(state)
        }
        first.signal()
        if isStale { listAgain() }
    }

    private func listAgain() {
        isStale = true
        if case .idle = listing, relist?.deadline == nil { relist?.arm(at: loop.now() + Self.settling) }
    }

    func loopStopped() { fail(.loopStopped) }

    private func fail(_ number: Int32) { fail(TransportError(errno: number, doing: "watching the network")) }

    private func fail(_ error: TransportError) {
        failure = error
        first.signal()
        close()
    }
}
