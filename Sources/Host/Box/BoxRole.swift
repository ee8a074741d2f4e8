internal import MuxCarrier
internal import NoiseCarrier
internal import Synchronization
internal import TransportIO
internal import TransportKit
internal import TunnelCarrier

/// The host as a box: it stays linked to its door and serves the devices that come through it.
final class BoxRole: Sendable {
    let plan: BoxPlan
    let roster: DeviceRoster
    let home: HomeID
    private let uplink: BoxUplink
    private let service: ForwardService
    private let multiplexer: YamuxMultiplexer
    private let activity: Activity
    private let sessions = Mutex<[StaticPublicKey: Int]>([:])
    private let linked = Mutex<(state: CarrierState, since: WallTime)>((.idle, WallTime(seconds: 0)))
    private let time: any TimeSource

    init(_ plan: BoxPlan, state: StateDirectory?, activity: Activity, loop: EventLoop, log: Log) {
        self.plan = plan
        self.activity = activity
        time = loop
        home = HomeID(of: plan.key.publicKey)
        roster = DeviceRoster(of: home, in: state, time: loop, log: log.named("box"))
        uplink = BoxUplink(
            through: plan.carrier, key: plan.key, doorKeys: plan.doorKeys, admission: roster, executor: loop,
            time: loop,
            log: log.named("box"))
        service = ForwardService(services: plan.services, loop: loop, log: log)
        multiplexer = YamuxMultiplexer(executor: loop, time: loop)
    }

    /// Stays linked until the task is cancelled.
    func run() async {
        linked.withLock { $0 = (uplink.states.latest, time.wallNow()) }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                for await state in uplink.states { linked.withLock { $0 = (state, time.wallNow()) } }
            }
            await uplink.run { [self] socket in
                await activity.during { await serve(socket) }
            }
            group.cancelAll()
        }
    }

    /// The network is back or has changed.
    func wake() async { await uplink.wake() }

    /// Lets the connections under way finish, then ends each session.
    func beginGracefulShutdown() { service.beginGracefulShutdown() }

    /// What it says of itself.
    func status(now: WallTime) -> StatusReport.Box {
        let (state, since) = linked.withLock { $0 }
        return StatusReport.Box(
            home: "\(home)", door: "\(state)".printable(limit: 400), isLinked: isLinked, since: since.seconds,
            devices: roster.devices.count, sessions: sessions.withLock { $0.values.reduce(0, +) },
            services: plan.services.keys.sorted())
    }

    private var isLinked: Bool { if case .open = uplink.states.latest { true } else { false } }

    private func serve(_ socket: NoiseSocket) async {
        sessions.withLock { $0[socket.peer, default: 0] += 1 }
        let session = await multiplexer.wrap(socket, isDialer: false, limits: Limits())
        await service.serve(session, target: session.info.target)
        await session.close(.normal, reason: "")
        sessions.withLock { sessions in
            sessions[socket.peer, default: 1] -= 1
            if sessions[socket.peer] == 0 { sessions[socket.peer] = nil }
        }
    }

    // MARK: - Devices

    /// Makes a line with which one new device can come, within ten minutes.
    func pair() async throws(DeviceRoster.Failure) -> PairingLine {
        let (code, dropped) = try roster.makeCode()
        if let dropped { await uplink.forget(dropped) }
        guard
            let line = PairingLine(
                door: plan.url, boxKey: plan.key.publicKey, doorKeys: plan.doorKeys, code: code, pins: plan.pins)
        else { throw DeviceRoster.Failure("the URL of the door is too long for a pairing line") }
        await uplink.expect(code, for: DeviceRoster.codeLifetime)
        return line
    }

    /// The answer to a question that came over the control socket, as a line.
    func answer(_ request: ControlRequest) async -> [UInt8] {
        do throws(DeviceRoster.Failure) {
            switch request.request {
            case .pair:
                let line = try await pair()
                return ControlCoding.line(
                    PairReport(
                        line: line.text, home: "\(home)", secondsLeft: DeviceRoster.codeLifetime.components.seconds,
                        isLinked: isLinked))
            case .name:
                _ = try await roster.name(request.device ?? "", request.name ?? "")
            case .revoke:
                // Who is no device any more loses its sessions.
                await uplink.revoke(try await roster.revoke(request.device ?? ""))
            case .devices, .status, .explain:
                break
            }
            return ControlCoding.line(devices)
        } catch {
            return ControlCoding.line(ControlFailure(error: error.description))
        }
    }

    private var devices: DevicesReport {
        let open = sessions.withLock { $0 }
        return DevicesReport(
            home: "\(home)", now: time.wallNow().seconds,
            devices: roster.devices.map { device in
                DevicesReport.Device(
                    key: device.key, name: device.name, added: device.added,
                    sessions: device.publicKey.flatMap { open[$0] } ?? 0)
            })
    }
}
