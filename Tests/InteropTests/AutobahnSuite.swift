import Foundation
import Testing
import TransportKit

/// A program that runs the cases of the Autobahn TestSuite: `kosoku`, or `wstest` of Autobahn itself.
struct AutobahnSuite {
    /// What a case came to.
    struct Verdict: Decodable {
        let behavior: String
        let behaviorClose: String

        var isGood: Bool {
            ["OK", "INFORMATIONAL"].contains(behavior) && ["OK", "INFORMATIONAL"].contains(behaviorClose)
        }
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static let agent = "TransportKit"
    static let whyNot: Comment =
        "neither kosoku nor wstest is here; bin/setup test installs kosoku where there is a Python 3.12 or newer"

    let program: URL
    private var isKosoku: Bool { program.lastPathComponent == "kosoku" }

    /// The program named by `AUTOBAHN`, or the one that `bin/setup test` installed.
    static let found: AutobahnSuite? = {
        let top = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        let named = ProcessInfo.processInfo.environment["AUTOBAHN"].map { URL(filePath: $0) }
        let candidates = [
            named, top.appending(path: ".venv-kosoku/bin/kosoku"), top.appending(path: ".venv/bin/kosoku"),
        ]
        return candidates.compactMap { $0 }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
            .map { AutobahnSuite(program: $0) }
    }()

    /// Lets the suite dial a listener.
    func testListener(at endpoint: Endpoint) async throws -> [String: Verdict] {
        try await withFolder("listener") { folder in
            let arguments: [String]
            if isKosoku {
                arguments = [
                    "-m", "fuzzingclient", "-x", "12.*", "-x", "13.*", "-o", folder.path,
                    "\(endpoint.host):\(endpoint.port)",
                ]
            } else {
                let specification: [String: Any] = [
                    "outdir": folder.path, "cases": ["*"], "exclude-cases": ["12.*", "13.*"],
                    "exclude-agent-cases": [:],
                    "servers": [["agent": Self.agent, "url": "ws://\(endpoint.host):\(endpoint.port)"]],
                ]
                arguments = ["-m", "fuzzingclient", "-s", try write(specification, in: folder)]
            }
            let process = try start(arguments, folder)
            await process.ended()
            return try await report(in: folder)
        }
    }

    /// Lets the suite listen while `body` dials every case.
    func testDialer(_ body: (Endpoint) async throws -> Void) async throws -> [String: Verdict] {
        let endpoint = Endpoint(scheme: .ws, host: .ipv4(.loopback), port: try Self.freePort())
        return try await withFolder("dialer") { folder in
            let arguments: [String]
            if isKosoku {
                arguments = [
                    "-m", "fuzzingserver", "-x", "12.*", "-x", "13.*", "-o", folder.path, "127.0.0.1:\(endpoint.port)",
                ]
            } else {
                let specification: [String: Any] = [
                    "url": "ws://127.0.0.1:\(endpoint.port)", "outdir": folder.path, "cases": ["*"],
                    "exclude-cases": ["12.*", "13.*"], "exclude-agent-cases": [:],
                ]
                arguments = ["-m", "fuzzingserver", "-s", try write(specification, in: folder)]
            }
            let process = try start(arguments, folder)
            defer { process.stop() }
            try await Self.untilListening(endpoint)
            try await body(endpoint)
            return try await report(in: folder)
        }
    }

    // MARK: - The program

    private func withFolder<Result>(_ role: String, _ body: (URL) async throws -> Result) async throws -> Result {
        let kept = ProcessInfo.processInfo.environment["AUTOBAHN_RESULTS"].map { URL(filePath: $0) }
        let parent = kept ?? FileManager.default.temporaryDirectory
        let folder = parent.appending(path: kept == nil ? "autobahn-\(role)-\(UUID())" : role)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { if kept == nil { try? FileManager.default.removeItem(at: folder) } }
        return try await body(folder)
    }

    /// Waits for the report, which the program writes once it is done with the last connection.
    private func report(in folder: URL) async throws -> [String: Verdict] {
        for _ in 0..<100 {
            if let index = try? Data(contentsOf: folder.appending(path: "index.json")),
                let agents = try? JSONDecoder().decode([String: [String: Verdict]].self, from: index),
                let report = agents.values.first
            {
                return report
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        throw Failure(description: "the suite wrote no report in \(folder.path)")
    }

    private func write(_ specification: [String: Any], in folder: URL) throws -> String {
        let file = folder.appending(path: "specification.json")
        try JSONSerialization.data(withJSONObject: specification).write(to: file)
        return file.path
    }

    private func start(_ arguments: [String], _ folder: URL) throws -> PeerProcess {
        try PeerProcess(program, arguments, log: folder.appending(path: "output.txt"))
    }

    /// A port that was free a moment ago.
    private static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let found = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && getsockname(descriptor, address, &length) == 0
            }
        }
        guard found else { throw Failure(description: "no port is free") }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func untilListening(_ endpoint: Endpoint) async throws {
        for _ in 0..<300 {
            let connected = await withCheckedContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: canConnect(endpoint.port)) }
            }
            if connected { return }
            try await Task.sleep(for: .milliseconds(100))
        }
        throw Failure(description: "the suite does not listen at \(endpoint)")
    }

    private static func canConnect(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
