internal import FoundationEssentials
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

    /// Makes a trace of what was observed.
    package init(_ observations: [PathObservation] = []) {
        self.observations = observations
    }

    /// Reads the text of a trace. Empty lines are let pass, and others that are none of a trace are counted.
    ///
    /// - Throws: where there are lines, and none of them is one of a trace.
    package static func read(_ text: some Collection<UInt8>, file: String) throws(TraceError) -> Trace {
        var trace = Trace()
        let decoder = JSONDecoder()
        // By bytes: as text, "\r\n" is one character and no "\n".
        for (index, line) in text.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated()
        where line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0d }) {
            let decoded = try? decoder.decode(TraceLine.self, from: Data(line))
            if let observation = decoded?.observation {
                trace.observations.append(observation)
                continue
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
        guard let data = FileManager.default.contents(atPath: path) else {
            throw TraceError("the trace \(path) cannot be read")
        }
        return try read(data, file: path)
    }

    /// The line of an observation.
    package static func line(_ observation: PathObservation) -> String {
        String(decoding: ControlCoding.line(TraceLine(observation)), as: UTF8.self)
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
