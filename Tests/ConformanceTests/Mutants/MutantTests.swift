import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

/// A suite that passes everything proves nothing: each rule must catch a transport that breaks it.
@Suite struct MutantTests {
    @Test(arguments: Mutation.allCases)
    func `The suite catches a transport that`(mutation: Mutation) async throws {
        let subject = Self.mutant(mutation)
        let check = try #require(
            TransportConformance.checks(for: subject).first { $0.name == mutation.brokenRule },
            "no rule is called '\(mutation.brokenRule)'")
        let failure = await #expect(throws: ConformanceFailure.self) { try await check.run() }
        #expect(failure?.rule == mutation.brokenRule)
        #expect(failure?.what.hasPrefix("an unexpected error") == false, "the failure should say what rule was broken")
    }

    @Test func `Every rule catches a transport that breaks it`() {
        let rules = TransportUnderTest.all.flatMap { TransportConformance.checks(for: $0) }.map(\.name)
        #expect(Set(rules).subtracting(Mutation.allCases.map(\.brokenRule)) == [])
    }

    private static func mutant(_ mutation: Mutation) -> TransportUnderTest {
        let capabilities = mutation.capabilities
        var subject = TransportUnderTest(name: mutation.rawValue, capabilities: capabilities, canVanish: true) {
            let network = MemoryNetwork(time: MachineTime())
            let inner = MemoryTransport(network: network, capabilities: capabilities)
            let service = Host("service.example") ?? .ipv4(.loopback)
            var rig = TransportRig(
                MutantTransport(inner: inner, mutation: mutation),
                endpoint: Endpoint(scheme: .wss, host: service, port: 0))
            rig.vanish = { network.vanish() }
            return rig
        }
        subject.patience = .seconds(3)
        return subject
    }
}
