/// An IPv6 address without its scope.
public struct IPv6Address: Sendable, Hashable {
    /// The upper 64 bits in host byte order.
    public let high: UInt64
    /// The lower 64 bits in host byte order.
    public let low: UInt64

    /// Makes an address from its two halves in host byte order.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// ::1
    public static let loopback = IPv6Address(high: 0, low: 1)
    /// ::, every address of the machine.
    public static let any = IPv6Address(high: 0, low: 0)

    /// Reads any text form of RFC 4291 §2.2, the mixed one with an IPv4 tail included.
    public init?(_ text: String) {
        var text = Substring(text)
        var tail: [UInt16] = []
        if text.contains(".") {
            guard let colon = text.lastIndex(of: ":"),
                let address = IPv4Address(String(text[text.index(after: colon)...]))
            else { return nil }
            tail = [UInt16(address.value >> 16), UInt16(address.value & 0xffff)]
            text = text[...colon]
            // A single colon before the tail only separates; `::` also stands for zeros.
            if !text.hasSuffix("::") { text = text.dropLast() }
        }
        guard let groups = Self.groups(of: text, tail: tail) else { return nil }
        high = groups[0..<4].reduce(0) { $0 << 16 | UInt64($1) }
        low = groups[4..<8].reduce(0) { $0 << 16 | UInt64($1) }
    }

    /// The eight groups of `text`, whose last ones may be known already.
    private static func groups(of text: Substring, tail: [UInt16]) -> [UInt16]? {
        let wanted = 8 - tail.count
        func parse(_ part: Substring) -> [UInt16]? {
            if part.isEmpty { return [] }
            var groups: [UInt16] = []
            for group in part.split(separator: ":", omittingEmptySubsequences: false) {
                guard (1...4).contains(group.utf8.count), !group.hasPrefix("+"), !group.hasPrefix("-"),
                    let number = UInt16(group, radix: 16)
                else { return nil }
                groups.append(number)
            }
            return groups
        }
        guard let gap = firstDoubleColon(in: text) else {
            guard let groups = parse(text), groups.count == wanted, !text.isEmpty else { return nil }
            return groups + tail
        }
        guard let front = parse(text[..<gap]), let back = parse(text[text.index(gap, offsetBy: 2)...]) else {
            return nil
        }
        guard front.count + back.count < wanted else { return nil }
        return front + Array(repeating: 0, count: wanted - front.count - back.count) + back + tail
    }

    private static func firstDoubleColon(in text: Substring) -> Substring.Index? {
        text.indices.first { index in
            let next = text.index(after: index)
            return text[index] == ":" && next < text.endIndex && text[next] == ":"
        }
    }
}

extension IPv6Address: CustomStringConvertible {
    /// The canonical text form of RFC 5952: lower case, the longest run of zero groups as `::`.
    public var description: String {
        let groups = (0..<8).map { index -> UInt16 in
            let half = index < 4 ? high : low
            return UInt16(truncatingIfNeeded: half >> UInt64((3 - index % 4) * 16))
        }
        if high == 0, low >> 32 == 0xffff {
            return "::ffff:\(IPv4Address(value: UInt32(truncatingIfNeeded: low)))"
        }
        var best = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, groups[end] == 0 { end += 1 }
            if end - start > best.count, end - start > 1 { best = start..<end }
            start = max(end, start + 1)
        }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        return best.isEmpty ? text(0..<8) : text(0..<best.lowerBound) + "::" + text(best.upperBound..<8)
    }
}
