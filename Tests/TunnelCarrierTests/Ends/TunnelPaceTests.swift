import Testing
import TransportKit

@testable import TunnelCarrier

/// R81, R82: when the next session may begin.
@Suite struct TunnelPaceTests {
    private let close = Close(.normal, origin: .remote)

    @Test func `Each early end doubles the wait, and a session that carried for 30 s ends all waiting`() {
        var pace = TunnelPace(Backoff())
        let now = Instant.zero + .seconds(100)
        for ceiling in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
            pace.ended(close, afterCarrying: .milliseconds(29_999), now: now) { 0.999 }
            #expect(pace.until == now + .milliseconds(ceiling) * 0.999)
        }
        #expect(pace.attempts == 9)
        pace.ended(close, afterCarrying: .seconds(30), now: now) { 0.999 }
        #expect(pace.until == nil)
        #expect(pace.attempts == 0)
    }

    @Test func `A wake ends the wait and starts the backoff over`() {
        var pace = TunnelPace(Backoff())
        for _ in 0..<5 { pace.ended(close, afterCarrying: .zero, now: .zero) { 0.5 } }
        pace.woken()
        #expect(pace.until == nil)
        pace.ended(close, afterCarrying: .zero, now: .zero) { 0.5 }
        #expect(pace.until == .zero + .milliseconds(250))
    }
}
