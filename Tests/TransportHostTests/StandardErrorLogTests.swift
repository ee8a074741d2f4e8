import Testing
import TransportKit

@testable import TransportHost

@Suite struct StandardErrorLogTests {
    @Test func `A peer's words in a log line neither end it nor move the cursor`() {
        let line = StandardErrorLog.line(
            .info, "box", "closed: \u{1b}[2J\n12:00:00.000 info all is well", at: "11:00:00.000")
        #expect(!line.unicodeScalars.contains { $0.properties.generalCategory == .control })
        #expect(line.hasPrefix("11:00:00.000 info box: closed: "))
    }
}
