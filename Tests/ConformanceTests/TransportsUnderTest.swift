import FramedTCP
import MemoryTransport
import TransportIO
import TransportKit
import TransportKitTesting

extension TransportUnderTest {
    /// The one list of what is tested.
    static let all = [
        memory, memoryMessagesOnly, webSocket, webSocketOverTLS, webSocketWithStreams, webSocketWithStreamsOverTLS,
        framedTCP, quic,
    ]

    static let memory = memory("memory", [.streams, .datagrams, .text])
    static let memoryMessagesOnly = memory("memory, messages only", [])

    private static func memory(_ name: String, _ capabilities: Capabilities) -> TransportUnderTest {
        TransportUnderTest(name: name, capabilities: capabilities, canVanish: true) {
            let network = MemoryNetwork(time: MachineTime())
            let transport = MemoryTransport(network: network, capabilities: capabilities)
            let service = Host("service.example") ?? .ipv4(.loopback)
            var rig = TransportRig(transport, endpoint: Endpoint(scheme: .wss, host: service, port: 0))
            rig.vanish = { network.vanish() }
            return rig
        }
    }

    /// The example that teaches how to write a transport.
    static let framedTCP = onLoop("framed TCP", []) { FramedTCPTransport(loop: $0) }

    /// How much the kernel's own buffers of a loopback connection hold, both ends together.
    private static let kernelBufferBytes = 24 << 20

    /// A transport of sockets, with a loop of its own for every check.
    private static func onLoop(
        _ name: String, _ capabilities: Capabilities, _ make: @escaping @Sendable (EventLoop) -> any Transport
    ) -> TransportUnderTest {
        TransportUnderTest(name: name, capabilities: capabilities, pathBufferBytes: kernelBufferBytes) {
            let loop = try EventLoop(name: "conformance")
            var rig = TransportRig(make(loop), endpoint: Endpoint(scheme: .ws, host: .ipv4(.loopback), port: 0))
            rig.tearDown = { await loop.shutdown() }
            return rig
        }
    }
}
