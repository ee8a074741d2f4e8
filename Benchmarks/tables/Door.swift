internal import MuxCarrier
internal import QUICTransport
internal import RigSupport
internal import TransportIO
internal import TransportKit
internal import TransportTLS
internal import WebSocketTransport

/// An echo over both transports at the door's address, until the rig is removed.
struct Door: Sendable {
    let url: ServiceURL
    /// What clients trust.
    let certificate: String

    init(_ net: Topology) async throws {
        let loop = try await net.door.makeLoop()
        let identity = try SelfSignedCertificate.makeIfMissing(
            names: [Topology.doorAddress], directory: "\(net.rig.folder)/door")
        certificate = identity.certificate
        url = try ServiceURL("wss://\(Topology.doorAddress):8443/echo")
        var options = ListenOptions()
        options.security = ServerSecurity(identity: identity)
        for transport in transports(on: loop) {
            let listener = try await transport.listen(url.endpoint, options: options)
            net.rig.run { await Self.serve(listener, loop) }
        }
    }

    private static func serve(_ listener: any Listener, _ loop: EventLoop) async {
        await withDiscardingTaskGroup { group in
            while let socket = try? await listener.accept() {
                group.addTask(executorPreference: loop) {
                    while let messages = try? await socket.receive(), (try? await socket.send(messages)) != nil {}
                    await socket.close()
                }
            }
            group.cancelAll()
        }
        await listener.close()
    }
}

/// Both transports on one loop, the preferred one first.
func transports(on loop: EventLoop) -> [any Transport] {
    [
        QUICTransport(loop: loop),
        WebSocketTransport(loop: loop, multiplexer: YamuxMultiplexer(executor: loop, time: loop)),
    ]
}
