internal import TransportKit

/// One leg of a door. Each link has tasks that read, write, close and refuse streams; all end with the socket.
struct DoorLegService: Service {
    private let leg: DoorLeg
    private let desk: DoorDesk

    init(_ leg: DoorLeg, _ desk: DoorDesk) {
        self.leg = leg
        self.desk = desk
    }

    /// A box's message 1 may be answered twice: what displaces is what comes after the handshake (R121).
    var answersEarly: Bool { leg == .box }

    func serve(_ socket: any Socket, target: Target) async {
        let address = socket.info.remoteAddress.map { AddressKey($0) }
        guard let link = await desk.opened(leg, address: address) else {
            await socket.close(.busy, reason: "too many links")
            return
        }
        let executor = desk.executor
        await withTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: executor) { await read(socket, link) }
            group.addTask(executorPreference: executor) { await write(socket, link) }
            group.addTask(executorPreference: executor) { await close(socket, link) }
            if socket.info.capabilities.contains(.streams) {
                group.addTask(executorPreference: executor) { await refuseStreams(of: socket) }
            }
        }
        if Task.isCancelled { await socket.close(.goingAway, reason: "the door stops") }
    }

    private func read(_ socket: any Socket, _ link: UInt64) async {
        while let batch = try? await socket.receive(), await desk.received(batch, on: link) {}
        await desk.ended(link)
    }

    private func write(_ socket: any Socket, _ link: UInt64) async {
        while let batch = await desk.next(link) {
            do throws(Close) { try await socket.send(batch) } catch { break }
        }
        await desk.ended(link)
    }

    /// Apart from the task that writes: that one may be stuck on a peer that does not read.
    private func close(_ socket: any Socket, _ link: UInt64) async {
        if let close = await desk.closing(link) { await socket.close(close.code, reason: close.reason) }
    }

    private func refuseStreams(of socket: any Socket) async {
        while let stream = try? await socket.acceptStream() { await stream.reset(CloseCode.unsupported.rawValue) }
    }
}
