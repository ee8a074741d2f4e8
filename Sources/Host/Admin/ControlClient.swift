internal import FoundationEssentials
internal import Glibc
internal import TransportKit

/// Asks a running host.
package enum ControlClient {
    /// A memory of 64 networks with 64 destinations each.
    private static let answerLimit = 16 << 20

    /// Asks the host behind a socket.
    ///
    /// - Returns: its answer as it came; nil where nobody is there.
    static func ask(_ path: String, _ request: ControlRequest) throws(ControlError) -> [UInt8]? {
        guard let descriptor = try ControlSocket.connect(path) else { return nil }
        defer { close(descriptor) }
        let line = ControlLine(descriptor)
        guard line.write(request.encoded()), let answer = line.read(limit: answerLimit) else {
            throw ControlError("the transportkit at \(path) does not answer")
        }
        return answer
    }

    /// Asks the host that runs a config file, or the one that runs where no file is named.
    ///
    /// - Returns: what it says of itself, and the line it came in.
    package static func ask<Answer: Decodable>(
        _ request: ControlRequest, configFile: String?, for answer: Answer.Type
    ) throws -> (Answer, json: String) {
        let line = try configFile.map { try ask(request, running: $0) } ?? askTheOne(request)
        let data = Data(line)
        if let failure = try? JSONDecoder().decode(ControlFailure.self, from: data) {
            throw ControlError(failure.error.printable(limit: 1000))
        }
        guard let answer = try? JSONDecoder().decode(Answer.self, from: data) else {
            throw ControlError("the answer cannot be read: the transportkit that runs may be of another version")
        }
        return (answer, String(decoding: line, as: UTF8.self))
    }

    private static func ask(_ request: ControlRequest, running file: String) throws -> [UInt8] {
        let configuration = try HostConfiguration(file: file)
        guard let path = configuration.controlPath(StateDirectory.environment) else {
            throw ControlError("\(file) has no control socket: 'control' is none, or there is no state directory")
        }
        guard let answer = try ask(path, request) else {
            throw ControlError("no transportkit runs \(file): nobody answers at \(path)")
        }
        return answer
    }

    /// Asks the only host whose socket lies in the usual place.
    private static func askTheOne(_ request: ControlRequest) throws -> [UInt8] {
        guard let folder = ControlPath.usualFolder(StateDirectory.environment) else {
            throw ControlError("there is no state directory to look in; name the config file")
        }
        var answers: [[UInt8]] = []
        var files: [String] = []
        for name in ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
        where ControlPath.isUsualName(name) {
            let path = "\(folder)/\(name)"
            guard let status = try ask(path, ControlRequest(request: .status)) else { continue }
            let report = try? JSONDecoder().decode(StatusReport.self, from: Data(status))
            files.append(report?.config ?? path)
            if files.count == 1, let answer = try ask(path, request) { answers.append(answer) }
        }
        guard files.count <= 1 else {
            throw ControlError("several run here; name one: \(Words.list(files))")
        }
        guard let answer = answers.first else {
            throw ControlError("no transportkit runs here: nobody answers in \(folder)")
        }
        return answer
    }
}

/// What a host is asked.
package struct ControlRequest: Codable, Sendable {
    /// What it is about.
    package enum Kind: String, Codable, Sendable {
        /// Everything as it is now.
        case status
        /// The last establishments of a carrier.
        case explain
    }

    /// What is asked for.
    package var request: Kind
    /// The carrier that is asked about.
    package var carrier: String?

    /// Makes a request.
    package init(request: Kind, carrier: String? = nil) {
        self.request = request
        self.carrier = carrier
    }

    func encoded() -> [UInt8] { ControlCoding.line(self) }
}

/// An answer that is none.
struct ControlFailure: Codable {
    var error: String
}

/// How requests and answers are written: one line of JSON.
enum ControlCoding {
    static func line(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if let data = try? encoder.encode(value) { return Array(data) }
        // Only a number that is none can bring this about.
        return Array(#"{"error":"the answer cannot be written"}"#.utf8)
    }
}
