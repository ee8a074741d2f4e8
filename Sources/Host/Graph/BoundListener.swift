internal import Synchronization
internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// A listener of the config, bound with all its transports on one port number, and the sessions on it.
final class BoundListener: Sendable {
    let plan: ListenerPlan
    /// What it is bound to, with the port that the system chose where 0 was asked for.
    let endpoint: Endpoint
    /// The pin of the certificate it shows.
    let pin: PublicKeyHash?

    private let listeners: [any Listener]
    private let routes: RouteTable
    private let log: Log
    private let sessions = Mutex<[ObjectIdentifier: Session]>([:])
    private let activity: Activity
    /// What has become of its sessions.
    let tally = Tally()

    private struct Session {
        var socket: any Socket
        var service: any Service
    }

    /// How often a port that UDP cannot have is given back for another, where any will do.
    private static let attempts = 20

    private init(
        plan: ListenerPlan, listeners: [any Listener], endpoint: Endpoint, pin: PublicKeyHash?, activity: Activity,
        log: Log
    ) {
        self.plan = plan
        self.listeners = listeners
        routes = RouteTable(plan.routes)
        self.endpoint = endpoint
        self.pin = pin
        self.activity = activity
        self.log = log
    }

    /// Binds every transport of a listener, or none.
    static func bind(_ plan: ListenerPlan, activity: Activity, log: Log) async throws(TransportError) -> BoundListener {
        var options = ListenOptions()
        options.limits = plan.limits
        options.keepalive = plan.keepalive
        options.security = try security(plan)
        options.tickets = plan.tickets
        options.earlyData = plan.earlyData
        let early = Set(plan.routes.filter(\.value.answersEarly).keys)
        options.answersEarly = { target in early.contains(target.path) }
        let routes = RouteTable(plan.routes)
        options.route = { target in routes[target] == nil ? .refuse(.nobodyThere) : .accept }
        let pin = try options.security.map { security throws(TransportError) in
            try CertificateHashes(certificateFile: security.identity.certificate).key
        }
        var attempt = 1
        while true {
            do {
                let (listeners, endpoint) = try await bindAll(plan, options)
                return BoundListener(
                    plan: plan, listeners: listeners, endpoint: endpoint, pin: pin, activity: activity, log: log)
            } catch {
                guard error.code == .addressInUse, plan.endpoint.port == 0, attempt < attempts else { throw error }
                attempt += 1
            }
        }
    }

    private static func bindAll(
        _ plan: ListenerPlan, _ options: ListenOptions
    ) async throws(TransportError) -> ([any Listener], Endpoint) {
        var listeners: [any Listener] = []
        var endpoint = plan.endpoint
        // TCP first: the system chooses the port among those that are free for it, and UDP ports are seldom taken.
        let tcpFirst = plan.transports.sorted { $0.name == .webSocket && $1.name != .webSocket }
        for transport in tcpFirst {
            do {
                let listener = try await transport.listen(endpoint, options: options)
                listeners.append(listener)
                endpoint.port = listener.endpoint.port
            } catch {
                for listener in listeners { await listener.close() }
                throw error.code == .addressInUse && plan.endpoint.port > 0
                    ? held(error, transport: transport.name, port: plan.endpoint.port) : error
            }
        }
        return (listeners, endpoint)
    }

    private static func held(_ error: TransportError, transport: TransportName, port: UInt16) -> TransportError {
        var error = error
        if let holder = PortHolder.describe(transport == .quic ? .udp : .tcp, port: port) {
            error.message += ", \(holder)"
        }
        return error
    }

    private static func security(_ plan: ListenerPlan) throws(TransportError) -> ServerSecurity? {
        switch plan.certificate {
        case nil: nil
        case .files(let files): ServerSecurity(identity: files, clientPins: plan.clientPins)
        case .selfSigned(let names, let directory):
            ServerSecurity(
                identity: try SelfSignedCertificate.makeIfMissing(names: names, directory: directory),
                clientPins: plan.clientPins)
        }
    }

    // MARK: - Sessions

    /// Serves until it is closed and the last session has ended.
    func run() async {
        await withDiscardingTaskGroup { group in
            for listener in listeners {
                group.addTask { [self] in await serve(listener) }
            }
        }
    }

    private func serve(_ listener: any Listener) async {
        await withDiscardingTaskGroup { group in
            while let socket = try? await listener.accept() {
                group.addTask { [self] in
                    tally.began()
                    await activity.during { await serve(socket) }
                    tally.ended()
                }
            }
        }
    }

    private func serve(_ socket: any Socket) async {
        let target = socket.info.target
        guard let service = routes[target] else {
            await socket.close(.nobodyThere, reason: "no route")
            return
        }
        let peer = socket.info.remoteAddress.map { "\($0)" } ?? "a peer"
        let isLogged = !service.keepsPeersPrivate
        if isLogged { log.debug("\(peer) opened \(target) over \(socket.info.transport.displayName)") }
        let key = ObjectIdentifier(socket)
        sessions.withLock { $0[key] = Session(socket: socket, service: service) }
        await service.serve(socket, target: target)
        sessions.withLock { $0[key] = nil }
        let close = await socket.close(.normal, reason: "")
        if isLogged { log.debug("\(peer) ended \(target): \("\(close)".printable())") }
    }

    /// Frees the port; sessions go on.
    func stopAccepting() async {
        for listener in listeners { await listener.close() }
    }

    /// Ends the sessions of services that cannot finish what is under way.
    func closeUngraceful() async {
        await closeSessions { !($0 is any GracefulService) }
    }

    /// Ends every session with 1001.
    func closeSessions(where isIncluded: (any Service) -> Bool = { _ in true }) async {
        let closing = sessions.withLock { sessions in
            sessions.values.filter { isIncluded($0.service) }.map(\.socket)
        }
        await withDiscardingTaskGroup { group in
            for socket in closing {
                group.addTask { await socket.close(.goingAway, reason: "the host is stopping") }
            }
        }
    }
}
