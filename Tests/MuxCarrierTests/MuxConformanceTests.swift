import MemoryTransport
import MuxCarrier
import Testing
import TransportKit
import TransportKitTesting

/// A wrapped socket keeps the whole contract of sockets.
@Suite struct MuxConformanceTests {
    @Test(
        arguments: [TransportUnderTest.muxed("muxed memory", []), .muxed("muxed memory with datagrams", .datagrams)]
            .flatMap { TransportConformance.checks(for: $0) })
    func `A wrapped socket keeps the contract`(check: TransportConformance.Check) async throws {
        try await check.run()
    }
}

extension TransportUnderTest {
    static func muxed(_ name: String, _ inner: Capabilities) -> TransportUnderTest {
        // A window of yamux has 256 KiB at least, and the socket below takes its own buffers full.
        TransportUnderTest(
            name: name, capabilities: inner.union(.streams), pathBufferBytes: 262_144 + 131_072, canVanish: true
        ) {
            let time = MachineTime()
            let network = MemoryNetwork(time: time)
            let transport = MuxedTransport(
                inner: MemoryTransport(network: network, capabilities: inner),
                multiplexer: YamuxMultiplexer(executor: QueueExecutor(), time: time))
            let service = Host("service.example") ?? .ipv4(.loopback)
            var rig = TransportRig(transport, endpoint: Endpoint(scheme: .wss, host: service, port: 0))
            rig.vanish = { network.vanish() }
            return rig
        }
    }
}
