import Testing
import TransportKit

@testable import QUICTransport

// B29
@Suite struct RefusalWatchTests {
    private func instant(_ milliseconds: UInt64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    @Test func `Reports that go on for two seconds of silence mean that the peer is gone`() {
        var watch = RefusalWatch()
        let verdicts = [1000, 1100, 1300, 2999, 3000].map { watch.refused(instant($0)) }
        #expect(verdicts == [false, false, false, false, true])
    }

    @Test func `Few reports mean nothing, however far apart`() {
        var watch = RefusalWatch()
        let verdicts = [1000, 60_000, 60_001].map { watch.refused(instant($0)) }
        #expect(verdicts == [false, false, true])
    }

    @Test func `Whatever is heard of the peer makes the reports before it void`() {
        var watch = RefusalWatch()
        for second in 1...100 as ClosedRange<UInt64> {
            for part in 0..<10 as Range<UInt64> {
                let isGone = watch.refused(instant(second * 1000 + part * 100))
                #expect(!isGone)
            }
            watch.heard()
        }
    }
}
