import Foundation
import Glibc
import Testing
import TransportHost
import TransportKit

/// The file of a trace: what hosts write to it, and what is read of it in whatever state it is. Costs about a second.
@Suite(.timeLimit(.minutes(1))) struct TraceFileTests {
    func dial(_ number: Int, _ transports: [String] = ["quic"]) -> PathObservation {
        PathObservation(
            time: WallTime(seconds: 1_800_000_000 + Int64(number)),
            path: PathKey(network: "n", destination: "door.test:443"), dial: "\(number)",
            event: .dialled(
                transports.map {
                    PathObservation.Candidate(TransportName(rawValue: $0), .opened, took: .milliseconds(80))
                }, winner: .quic, after: .milliseconds(80), roundTrip: nil))
    }

    func read(_ text: String) throws -> Trace { try Trace.read(text.utf8, file: "t") }

    @Test func `A line that is none is left out, and told with its place`() throws {
        let lines = (1...3).map { Trace.line(dial($0)) }
        let trace = try read(lines[0] + "\n" + lines[1].prefix(40) + "\n\0\0\n" + lines[2] + "\n")
        #expect(trace.observations == [dial(1), dial(3)])
        #expect(trace.skippedLines == 2)
        #expect(trace.firstSkipped == "t:2")
        let report = ReplayReport(trace, [(HeadStartRacePolicy(), DayDemotionPolicy())])
        #expect(report.lines.last == "2 lines are none of a trace and were left out; the first is t:2")
        #expect(report.json.contains("\"skippedLines\":2"))
        #expect(try read("").observations.isEmpty)
    }

    @Test func `A copy with the line ends of another system is read`() throws {
        let trace = try read((1...3).map { Trace.line(dial($0)) + "\r\n" }.joined() + "\r\n")
        #expect(trace.observations == (1...3).map { dial($0) })
        #expect(trace.skippedLines == 0)
    }

    @Test func `What is longer than a trace can be is refused, and not read`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let path = "\(folder)/long"
            try write("", to: path)
            #expect(truncate(path, 2 << 30) == 0)
            for path in [path, "/dev/zero"] {
                let error = #expect(throws: TraceError.self) { try Trace.read(file: path) }
                #expect(error?.description == "the trace \(path) is longer than 64 MiB, and no host writes that")
            }
            let error = #expect(throws: TraceError.self) { try Trace.read(file: folder) }
            #expect(error?.description == "the trace \(folder) cannot be read: Is a directory")
        }
    }

    @Test func `No trace makes a race of thousands, in one dial or over many`() throws {
        let names = (0..<20_000).map { "t\($0)" }
        let good = Trace.line(dial(1)) + "\n"
        #expect(try read(good + Trace.line(dial(2, names))).skippedLines == 1)
        #expect(try read(good + Trace.line(dial(2, Array(names.prefix(63))))).skippedLines == 0)
        // One name each: the 63 that find room beside the first, and as many dials that do not.
        let many = try read(good + names.prefix(126).map { Trace.line(dial(2, [$0])) + "\n" }.joined())
        #expect(many.observations.count == 64)
        #expect(many.firstSkipped == "t:65")
        let long = Trace.line(dial(2, [String(repeating: "x", count: 600)]))
        #expect(try read(good + long).skippedLines == 1)
    }

    @Test func `Hosts add to one file, also behind the half line of one that was killed`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let path = "\(folder)/trace"
            try write("{\"code\n" + Trace.line(dial(0)) + "\n" + Trace.line(dial(0)).prefix(50), to: path)
            #expect(Trace.problem(addingTo: path) == nil)
            let writers = try (0..<3).map { _ in try TraceWriter(path, log: Log()) }
            for number in 1...60 { writers[number % 3].observe(dial(number)) }
            for writer in writers { await writer.flush() }
            let trace = try Trace.read(file: path)
            #expect(Set(trace.observations) == Set((0...60).map { dial($0) }))
            #expect(trace.skippedLines == 2)
            #expect(trace.firstSkipped == "\(path):1")
        }
    }

    @Test func `What a full disk took of a line is taken back`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let path = "\(folder)/trace"
            try write(Trace.line(dial(0)) + "\n", to: path)
            let before = try Data(contentsOf: URL(fileURLWithPath: path))
            let full = try TraceWriter(path, log: Log()) { bytes, descriptor in
                #expect(Glibc.write(descriptor, bytes, 50) == 50)
                errno = ENOSPC
                return false
            }
            full.observe(dial(1))
            full.observe(dial(2))
            await full.flush()
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
            // There is room again.
            let next = try TraceWriter(path, log: Log())
            next.observe(dial(3))
            await next.flush()
            let trace = try Trace.read(file: path)
            #expect(trace.observations == [dial(0), dial(3)])
            #expect(trace.skippedLines == 0)
        }
    }
}
