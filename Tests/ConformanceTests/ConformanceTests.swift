import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

/// Every transport against the one suite.
@Suite struct ConformanceTests {
    @Test(arguments: TransportUnderTest.all.flatMap { TransportConformance.checks(for: $0) })
    func `Every transport keeps the contract`(check: TransportConformance.Check) async throws {
        try await check.run()
    }
}

extension TransportUnderTest {
    /// The one list of what is tested.
    static let all = [memory, memoryMessagesOnly, webSocket, webSocketOverTLS]

    static let memory = memory("memory", [.streams, .datagrams, .text])
    static let memoryMessagesOnly = memory("memory, messages only", [])

    static func memory(_ name: String, _ capabilities: Capabilities) -> TransportUnderTest {
        TransportUnderTest(name: name, capabilities: capabilities, canVanish: true) {
            let network = MemoryNetwork(time: MachineTime())
            let transport = MemoryTransport(network: network, capabilities: capabilities)
            let service = Host("service.example") ?? .ipv4(.loopback)
            var rig = TransportRig(transport, endpoint: Endpoint(scheme: .wss, host: service, port: 0))
            rig.vanish = { network.vanish() }
            return rig
        }
    }
}
