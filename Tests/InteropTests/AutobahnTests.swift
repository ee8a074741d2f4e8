import Foundation
import Testing
import TransportIO
import TransportKit
import WebSocketTransport

/// The cases of the Autobahn TestSuite outside 12 and 13 (compression, which is never agreed on), in both roles.
///
/// `AUTOBAHN_RESULTS` names a folder that then gets the two reports; `docs/interop.md` has the table.
@Suite(.serialized) struct AutobahnTests {
    static let expectedCases = 301

    @Test(.enabled(if: AutobahnSuite.found != nil, AutobahnSuite.whyNot))
    func `Our listener passes every case`() async throws {
        let suite = try #require(AutobahnSuite.found)
        try await EchoPeer.withLoop { loop in
            let transport = WebSocketTransport(loop: loop)
            var options = ListenOptions()
            options.limits = EchoPeer.limits
            let here = Endpoint(scheme: .ws, host: .ipv4(.loopback), port: 0)
            let listener = try await transport.listen(here, options: options)
            let serving = Task(executorPreference: loop) { await EchoPeer.serve(listener) }
            let report = try await suite.testListener(at: listener.endpoint)
            await listener.close()
            await serving.value
            check(report, "listener")
        }
    }

    @Test(.enabled(if: AutobahnSuite.found != nil, AutobahnSuite.whyNot))
    func `Our dialer passes every case`() async throws {
        let suite = try #require(AutobahnSuite.found)
        try await EchoPeer.withLoop { loop in
            let transport = WebSocketTransport(loop: loop)
            let report = try await suite.testDialer { endpoint in
                let dialing = Task(executorPreference: loop) {
                    try await EchoPeer.dialEveryCase(transport, endpoint, agent: AutobahnSuite.agent)
                }
                try await dialing.value
            }
            check(report, "dialer")
        }
    }

    private func check(_ report: [String: AutobahnSuite.Verdict], _ role: String) {
        #expect(report.count == Self.expectedCases)
        for (name, verdict) in report {
            #expect(verdict.isGood, "\(role), case \(name): \(verdict.behavior), close \(verdict.behaviorClose)")
        }
    }
}
