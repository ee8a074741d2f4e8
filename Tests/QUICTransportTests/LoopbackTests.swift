import Foundation
import Testing
import TransportIO
import TransportKit
import TransportTLS

@testable import QUICTransport

@Suite struct LoopbackTests {
    @Test func `A message goes there and back`() async throws {
        let loop = try EventLoop(name: "quic")
        let folder = FileManager.default.temporaryDirectory.appending(path: "quic-\(getpid())")
        let files = try SelfSignedCertificate.makeIfMissing(names: ["127.0.0.1"], directory: folder.path)
        let transport = QUICTransport(loop: loop)
        var listen = ListenOptions()
        listen.security = ServerSecurity(identity: files)
        let listener = try await transport.listen(
            Endpoint(scheme: .wss, host: .ipv4(.loopback), port: 0), options: listen)
        var dial = DialOptions()
        dial.security = ClientSecurity(trust: .file(files.certificate))
        let near = try await transport.dial(
            ServiceURL(listener.endpoint, target: try #require(Target("/echo?x"))), options: dial)
        let far = try await listener.accept()
        #expect(far.info.target.wireForm == "/echo?x")
        try await near.send(Message(Bytes("hello")))
        #expect(try await far.receive().map(\.payload) == [Bytes("hello")])
        try await far.send([Message(Bytes("bulk"), delivery: .bulk), Message(Bytes("gram"), delivery: .unreliable)])
        var got: [Message] = []
        while got.count < 2 { got += try await near.receive() }
        #expect(got.count == 2)
        let close = await near.close(.policy, reason: "done")
        #expect(close.code == .policy)
        await listener.close()
        await loop.shutdown()
    }
}
