import MemoryTransport
import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting

/// A sealed socket keeps the whole contract of sockets.
@Suite struct NoiseConformanceTests {
    @Test(
        arguments: [
            TransportUnderTest.sealed("sealed memory", []), .sealed("sealed memory with datagrams", .datagrams),
        ]
        .flatMap { TransportConformance.checks(for: $0) })
    func `A sealed socket keeps the contract`(check: TransportConformance.Check) async throws {
        try await check.run()
    }
}

extension TransportUnderTest {
    static func sealed(_ name: String, _ inner: Capabilities) -> TransportUnderTest {
        TransportUnderTest(name: name, capabilities: inner, canVanish: true) {
            let time = MachineTime()
            let network = MemoryNetwork(time: time)
            let transport = SealedTransport(
                inner: MemoryTransport(network: network, capabilities: inner), executor: QueueExecutor(), time: time)
            let service = Host("service.example") ?? .ipv4(.loopback)
            var rig = TransportRig(transport, endpoint: Endpoint(scheme: .wss, host: service, port: 0))
            rig.vanish = { network.vanish() }
            return rig
        }
    }
}
