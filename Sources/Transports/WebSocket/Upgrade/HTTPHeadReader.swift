package import TransportKit

/// Collects the head of an HTTP message as it arrives, and keeps what comes glued to its end.
package struct HTTPHeadReader {
    /// Room for the longest target and then some.
    package static let limit = 16 << 10

    private var bytes = Bytes()
    private var lines: [Bytes] = []
    private var lineStart = 0
    private var seen = 0

    /// Whether not a byte has arrived.
    package var isUntouched: Bool { bytes.isEmpty }

    /// Makes a reader that has seen nothing.
    package init() {}

    /// Takes bytes that arrived.
    ///
    /// - Returns: the head, once it is whole, and the bytes that follow it.
    /// - Throws: what is wrong with it, as soon as that is there.
    package mutating func take(_ more: UnsafeRawBufferPointer) throws(HTTPHead.Malformed) -> (
        head: HTTPHead, rest: Bytes
    )? {
        unsafe bytes.append(contentsOf: more)
        while let end = bytes.firstOffset(of: 0x0a, from: seen) {
            guard end <= Self.limit else { break }
            guard end > lineStart, bytes[end - 1] == 0x0d else {
                throw HTTPHead.Malformed("has a line that ends in LF alone")
            }
            let line = bytes[lineStart..<end - 1]
            lineStart = end + 1
            seen = lineStart
            guard line.isEmpty else {
                lines.append(line)
                guard lines.count <= HTTPHead.fieldLimit + 1 else {
                    throw HTTPHead.Malformed("has more than \(HTTPHead.fieldLimit) fields")
                }
                continue
            }
            defer { self = HTTPHeadReader() }
            return (try HTTPHead(lines: lines), bytes.dropFirst(lineStart))
        }
        seen = bytes.count
        guard bytes.count <= Self.limit else { throw HTTPHead.Malformed("is longer than \(Self.limit) bytes") }
        return nil
    }
}
