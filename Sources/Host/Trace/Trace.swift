internal import FoundationEssentials
internal import Glibc
package import TransportKit

/// A recorded trace: one observation per line.
package struct Trace: Sendable {
    /// What it says, in the order of its lines.
    package var observations: [PathObservation]
    /// How many lines are none of a trace: a host was killed while it wrote, or somebody else wrote. They are left out.
    package var skippedLines = 0
    /// The first of them, as `file:line`.
    package var firstSkipped: String?

    /// How many bytes a trace has at most.
    static let sizeLimit = 64 << 20
    /// How many bytes a line has at most; the longest that a host writes has some 100 KiB.
    private static let lineLimit = 1 << 20
    /// How many transports a trace may name.
    static let transportLimit = 64

    /// Makes a trace of what was observed.
    package init(_ observations: [PathObservation] = []) {
        self.observations = observations
    }

    /// Reads the text of a trace. Empty lines are let pass, and others that are none of a trace are counted.
    ///
    /// - Throws: where there are lines, and none of them is one of a trace.
    package static func read(_ text: some Collection<UInt8>, file: String) throws(TraceError) -> Trace {
        var trace = Trace()
        var transports: Set<TransportName> = []
        let decoder = JSONDecoder()
        // By bytes: as text, "\r\n" is one character and no "\n".
        for (index, line) in text.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated()
        where line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0d }) {
            let decoded = line.count > lineLimit ? nil : try? decoder.decode(TraceLine.self, from: Data(line))
            if let observation = decoded?.observation {
                let named = transports.union(observation.transports)
                if named.count <= transportLimit {
                    transports = named
                    trace.observations.append(observation)
                    continue
                }
            }
            trace.skippedLines += 1
            trace.firstSkipped = trace.firstSkipped ?? "\(file):\(index + 1)"
        }
        if let place = trace.firstSkipped, trace.observations.isEmpty {
            throw TraceError("\(place): this is no line of a trace")
        }
        return trace
    }

    /// Reads a file.
    package static func read(file path: String) throws(TraceError) -> Trace {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { close(descriptor) }
        let tooLong = TraceError("the trace \(path) is longer than \(sizeLimit >> 20) MiB, and no host writes that")
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw unreadable(path) }
        guard status.st_mode & S_IFMT != S_IFREG || status.st_size <= sizeLimit else { throw tooLong }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
            guard count >= 0 || errno == EINTR else { throw unreadable(path) }
            if count == 0 { return try read(bytes, file: path) }
            bytes += chunk[..<max(count, 0)]
            guard bytes.count <= sizeLimit else { throw tooLong }
        }
    }

    private static func unreadable(_ path: String) -> TraceError {
        TraceError("the trace \(path) cannot be read: \(ControlSocket.words(errno))")
    }

    /// The line of an observation.
    package static func line(_ observation: PathObservation) -> String {
        String(decoding: ControlCoding.line(TraceLine(observation)), as: UTF8.self)
    }
}

extension PathObservation {
    /// What it names.
    fileprivate var transports: [TransportName] {
        switch event {
        case .dialled(let candidates, let winner, _, _): candidates.map(\.transport) + (winner.map { [$0] } ?? [])
        case .ended(let ending): [ending.transport]
        }
    }
}

/// Why a trace cannot be read or written. A sentence for a person.
package struct TraceError: Error, CustomStringConvertible {
    /// The sentence.
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
