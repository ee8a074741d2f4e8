import DirectCarrier
import Testing
import TransportKit
import TransportKitTesting

/// Every carrier against the one suite, and the suite against carriers that break it.
@Suite struct CarrierConformanceTests {
    @Test(arguments: CarrierUnderTest.all.flatMap { CarrierConformance.checks(for: $0) })
    func `Every carrier keeps the contract`(check: CarrierConformance.Check) async throws {
        try await check.run()
    }

    @Test(arguments: CarrierMutation.allCases)
    func `The suite catches a carrier that`(mutation: CarrierMutation) async throws {
        let isForMany = mutation != .neverDisplaces
        var subject = CarrierUnderTest(name: mutation.rawValue, hasRoomForMany: isForMany) {
            try await MemoryPeer().rig { MutantCarrier(try $0.direct(), mutation: mutation, hasRoomForMany: isForMany) }
        }
        subject.patience = .seconds(3)
        let check = try #require(
            CarrierConformance.checks(for: subject).first { $0.name == mutation.brokenRule },
            "no rule is called '\(mutation.brokenRule)'")
        let failure = await #expect(throws: ConformanceFailure.self) { try await check.run() }
        #expect(failure?.rule == mutation.brokenRule)
        #expect(failure?.what.hasPrefix("an unexpected error") == false, "the failure should say what rule was broken")
    }

    @Test func `Every rule catches a carrier that breaks it`() {
        let rules = CarrierUnderTest.all.flatMap { CarrierConformance.checks(for: $0) }.map(\.name)
        #expect(Set(rules).subtracting(CarrierMutation.allCases.map(\.brokenRule)) == [])
    }
}
