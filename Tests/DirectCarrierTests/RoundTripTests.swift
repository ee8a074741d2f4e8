import Testing
import TransportKit

@testable import DirectCarrier

/// Which round trip a dial has shown, and when it has shown none (RFC 6298 §3).
@Suite struct RoundTripTests {
    private static let first = SocketAddress.loopback(port: 1)
    private static let second = SocketAddress.loopback(port: 2)

    private func roundTrip(_ steps: [(Int, DialProgress)]) -> Duration? {
        EstablishmentReport.roundTrip(
            steps.map { EstablishmentReport.Step(time: .milliseconds($0.0), progress: $0.1) })
    }

    @Test func `A connection shows the time since its one attempt`() {
        #expect(
            roundTrip([
                (5, .attempt(Self.first)), (255, .attempt(Self.second)), (295, .connected(Self.second)),
                (340, .secured), (400, .opened),
            ]) == .milliseconds(40))
        // The first address may have answered after the second was tried.
        #expect(
            roundTrip([(0, .attempt(Self.first)), (250, .attempt(Self.second)), (300, .connected(Self.first))])
                == .milliseconds(300))
    }

    @Test func `An address that was tried twice shows nothing`() {
        #expect(
            roundTrip([
                (0, .attempt(Self.first)), (250, .attempt(Self.first)), (290, .connected(Self.first)), (340, .secured),
            ]) == nil)
    }

    @Test func `A connection for which TCP may have tried again shows nothing`() {
        #expect(roundTrip([(0, .attempt(Self.first)), (999, .connected(Self.first))]) == .milliseconds(999))
        #expect(roundTrip([(0, .attempt(Self.first)), (1040, .connected(Self.first)), (1080, .secured)]) == nil)
    }

    @Test func `What the transport has measured counts, however long the dial took and whoever was tried last`() {
        #expect(
            roundTrip([
                (0, .attempt(Self.first)), (250, .attempt(Self.second)), (1100, .measured(.milliseconds(40))),
                (1100, .secured), (1100, .opened),
            ]) == .milliseconds(40))
    }

    @Test func `A handshake of unknown length shows nothing`() {
        #expect(roundTrip([(0, .attempt(Self.first)), (80, .secured), (80, .opened)]) == nil)
        #expect(roundTrip([(0, .secured), (0, .opened)]) == nil)
    }
}
