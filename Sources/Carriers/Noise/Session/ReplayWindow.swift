/// Remembers which of the last 1,024 numbers have been received (R63): 16 words of 64 bits, and the highest number.
///
/// A value that knows no keys: the check comes before a message is opened, the mark after it has proved authentic (R67).
struct ReplayWindow: Sendable {
    enum Verdict: Equatable {
        /// It has not been received.
        case fresh
        case replayed
        /// It lies behind the window, so nobody knows.
        case tooOld
        /// No message has this number.
        case reserved
    }

    static let size: UInt64 = 1024

    /// Bit `number % 1024` says whether it has been received, for the numbers of the window.
    private var words = InlineArray<16, UInt64>(repeating: 0)
    /// One more than the highest number received.
    private var next: UInt64 = 0

    func check(_ number: UInt64) -> Verdict {
        guard number != TransportMessage.reservedNumber else { return .reserved }
        guard number < next else { return .fresh }
        guard next - 1 - number < Self.size else { return .tooOld }
        return words[Self.word(number)] & Self.bit(number) == 0 ? .fresh : .replayed
    }

    /// Remembers a number that ``check(_:)`` has found fresh.
    mutating func mark(_ number: UInt64) {
        if number >= next {
            if number - next >= Self.size {
                words = .init(repeating: 0)
            } else {
                // Those in between have not been received. Over time this is one bit for each number.
                for skipped in next..<number { words[Self.word(skipped)] &= ~Self.bit(skipped) }
            }
            next = number + 1
        }
        words[Self.word(number)] |= Self.bit(number)
    }

    private static func word(_ number: UInt64) -> Int { Int(number % size / 64) }

    private static func bit(_ number: UInt64) -> UInt64 { 1 << (number % 64) }
}
