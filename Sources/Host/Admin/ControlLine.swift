internal import Glibc

/// One line in, one line out, on a descriptor that is read and written with a limit on how long that takes.
@safe struct ControlLine {
    private let descriptor: Int32
    private let deadline: ContinuousClock.Instant

    init(_ descriptor: Int32, within limit: Duration = .seconds(5)) {
        self.descriptor = descriptor
        deadline = .now + limit
    }

    /// Reads up to the end of the line, or of the connection.
    ///
    /// - Returns: nil where that takes too long, breaks off or is longer than `limit`.
    func read(limit: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= limit {
            let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
            if count > 0 {
                bytes += chunk[..<count]
                if let end = bytes.firstIndex(of: 0x0a) { return Array(bytes[..<end]) }
            } else if count == 0 {
                return bytes.isEmpty ? nil : bytes
            } else {
                guard errno == EAGAIN || errno == EINTR, wait(for: Int16(POLLIN)) else { return nil }
            }
        }
        return nil
    }

    /// Writes a line. A reader that has gone is no event (B26).
    ///
    /// - Returns: whether all of it was taken.
    @discardableResult
    func write(_ line: [UInt8]) -> Bool {
        var rest = (line + [0x0a])[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else {
                guard count < 0, errno == EAGAIN || errno == EINTR, wait(for: Int16(POLLOUT)) else { return false }
            }
        }
        return true
    }

    private func wait(for events: Int16) -> Bool {
        let left = deadline - .now
        guard left > .zero else { return false }
        var wanted = pollfd(fd: descriptor, events: events, revents: 0)
        let milliseconds = left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000
        return unsafe poll(&wanted, 1, Int32(clamping: milliseconds + 1)) >= 0 || errno == EINTR
    }
}
