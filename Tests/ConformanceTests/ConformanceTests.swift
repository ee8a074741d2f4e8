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
