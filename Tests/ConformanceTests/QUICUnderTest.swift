import Foundation
import QUICTransport
import TransportIO
import TransportKit
import TransportKitTesting
import TransportTLS

extension TransportUnderTest {
    /// The two ends on two loops, so that one can be stopped.
    static let quic = TransportUnderTest(
        name: "quic", capabilities: [.streams, .datagrams], pathBufferBytes: 24 << 20, canVanish: true
    ) {
        let near = try EventLoop(name: "near")
        let far = try EventLoop(name: "far")
        let here = Endpoint(scheme: .wss, host: .ipv4(.loopback), port: 0)
        var rig = TransportRig(QUICTransport(loop: near), endpoint: here)
        rig.listener = QUICTransport(loop: far)
        let files = try certificate.get()
        rig.listenOptions.security = ServerSecurity(identity: files)
        rig.dialOptions.security = ClientSecurity(trust: .file(files.certificate))
        // A process that hangs for longer than the idle limit of the check.
        rig.vanish = { far.execute { usleep(3_000_000) } }
        rig.tearDown = {
            await near.shutdown()
            await far.shutdown()
        }
        return rig
    }

    private static let certificate = Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "quic-conformance-\(getpid())")
        return try SelfSignedCertificate.makeIfMissing(names: ["127.0.0.1"], directory: folder.path)
    }
}
