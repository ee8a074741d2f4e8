import Foundation
import MuxCarrier
import TransportIO
import TransportKit
import TransportKitTesting
import TransportTLS
import WebSocketTransport

extension TransportUnderTest {
    static let webSocket = webSocket("websocket", .ws)
    static let webSocketOverTLS = webSocket("websocket over TLS", .wss)
    static let webSocketWithStreams = webSocket("websocket with streams", .ws, streams: true)
    static let webSocketWithStreamsOverTLS = webSocket("websocket with streams over TLS", .wss, streams: true)

    /// The two ends on two loops, so that one can be stopped.
    private static func webSocket(
        _ name: String, _ scheme: Endpoint.Scheme, streams: Bool = false
    ) -> TransportUnderTest {
        let capabilities: Capabilities = streams ? .streams : .text
        return TransportUnderTest(name: name, capabilities: capabilities, pathBufferBytes: 16 << 20, canVanish: true) {
            let near = try EventLoop(name: "near")
            let far = try EventLoop(name: "far")
            let here = Endpoint(scheme: scheme, host: .ipv4(.loopback), port: 0)
            func transport(_ loop: EventLoop) -> WebSocketTransport {
                WebSocketTransport(
                    loop: loop, multiplexer: streams ? YamuxMultiplexer(executor: loop, time: loop) : nil)
            }
            var rig = TransportRig(transport(near), endpoint: here)
            rig.listener = transport(far)
            if scheme == .wss {
                let files = try certificate.get()
                rig.listenOptions.security = ServerSecurity(identity: files)
                rig.dialOptions.security = ClientSecurity(trust: .file(files.certificate))
            }
            // A process that hangs for longer than the idle limit of the check.
            rig.vanish = { far.execute { usleep(3_000_000) } }
            rig.tearDown = {
                await near.shutdown()
                await far.shutdown()
            }
            return rig
        }
    }

    private static let certificate = Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "websocket-conformance-\(getpid())")
        return try SelfSignedCertificate.makeIfMissing(names: ["127.0.0.1"], directory: folder.path)
    }
}
