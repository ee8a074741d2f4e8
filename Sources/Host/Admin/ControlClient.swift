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
        try Question(path, request)?.answer()
    }

    /// A question that is on its way: of several hosts each has its time to answer from when it was asked.
    private struct Question: ~Copyable {
        private let path: String
        private let descriptor: Int32
        private let line: ControlLine

        /// Asks; nil where nobody is there.
        init?(_ path: String, _ request: ControlRequest) throws(ControlError) {
            guard let descriptor = try ControlSocket.connect(path) else { return nil }
            self.path = path
            self.descriptor = descriptor
            line = ControlLine(descriptor)
            // One that is busy answers without having read the question.
            line.write(request.encoded())
        }

        deinit { close(descriptor) }

        /// Waits for the answer.
        borrowing func answer() throws(ControlError) -> [UInt8] {
            guard let answer = line.read(limit: ControlClient.answerLimit) else {
                throw ControlError("the transportkit at \(path) does not answer")
            }
            return answer
        }
    }

    /// What hosts answer that are all asked at once, in the order of their sockets; nil where nobody is there.
    private static func askAll(
        _ paths: ArraySlice<String>, _ request: ControlRequest
    ) -> [(path: String, answer: Result<[UInt8]?, ControlError>)] {
        guard let path = paths.first else { return [] }
        // The others are asked before this one has to answer.
        let question: Question?
        do throws(ControlError) {
            question = try Question(path, request)
        } catch {
            return [(path, .failure(error))] + askAll(paths.dropFirst(), request)
        }
        let others = askAll(paths.dropFirst(), request)
        do throws(ControlError) {
            switch consume question {
            case .some(let question): return [(path, .success(try question.answer()))] + others
            case nil: return [(path, .success(nil))] + others
            }
        } catch {
            return [(path, .failure(error))] + others
        }
    }

    /// Asks the host that runs a config file, or the one that runs where no file is named.
    ///
    /// - Returns: what it says of itself, and the line it came in.
    package static func ask<Answer: ControlAnswer>(
        _ request: ControlRequest, configFile: String?, for answer: Answer.Type
    ) throws -> (Answer, json: String) {
        let line = try configFile.map { try ask(request, running: $0) } ?? askTheOne(request)
        let data = Data(line)
        if let failure = failure(line) { throw failure }
        let answer: Answer
        do {
            answer = try JSONDecoder().decode(Answer.self, from: data)
        } catch {
            throw unreadable(words(error))
        }
        if let what = nonsense(in: answer) { throw unreadable(what) }
        return (answer, ControlCoding.printable(line))
    }

    private static func unreadable(_ what: String) -> ControlError {
        ControlError("the answer cannot be read: \(what); the transportkit that runs may be of another version")
    }

    private static func words(_ error: any Error) -> String {
        func place(_ path: [any CodingKey]) -> String {
            let text = path.reduce(into: "") { text, key in
                text += key.intValue.map { "[\($0)]" } ?? (text.isEmpty ? "" : ".") + key.stringValue
            }
            return text.printable()
        }
        return switch error as? DecodingError {
        case .keyNotFound(let key, let context): "\(place(context.codingPath + [key])) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            context.codingPath.isEmpty
                ? String(context.debugDescription.printable().prefix { $0 != "." })
                : "\(place(context.codingPath)) is not what it should be"
        case nil: "it is not what it should be"
        @unknown default: "it is not what it should be"
        }
    }

    /// The first time or duration in an answer that no host would say, in words: nobody's arithmetic must meet it.
    private static func nonsense(in value: Any, at place: String = "") -> String? {
        if let time = value as? Int64 {
            return (-1 << 40...1 << 40).contains(time) ? nil : "\(place) is \(time), which is no time"
        }
        if let number = value as? Double {
            return (-1e12...1e12).contains(number) ? nil : "\(place) is \(number), which is no duration"
        }
        let mirror = Mirror(reflecting: value)
        for (index, child) in mirror.children.enumerated() {
            var inner = place
            switch mirror.displayStyle {
            case .optional: break
            case .collection: inner += "[\(index)]"
            default: inner += (place.isEmpty ? "" : ".") + (child.label ?? "")
            }
            if let found = nonsense(in: child.value, at: inner) { return found }
        }
        return nil
    }

    /// Why an answer is none.
    private static func failure(_ answer: [UInt8]) -> ControlError? {
        let failure = try? JSONDecoder().decode(ControlFailure.self, from: Data(answer))
        return failure.map { ControlError($0.error.printable(limit: 1000)) }
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

    /// Asks the only host whose socket lies in the usual place. One that does not answer hides no other; it is named on
    /// standard error.
    private static func askTheOne(_ request: ControlRequest) throws -> [UInt8] {
        guard let folder = ControlPath.usualFolder(StateDirectory.environment) else {
            throw ControlError("there is no state directory to look in; name the config file")
        }
        let paths = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
            .filter(ControlPath.isUsualName).map { "\(folder)/\($0)" }
        var answers: [[UInt8]] = []
        var files: [String] = []
        var silent: [String] = []
        for (path, answer) in askAll(paths[...], ControlRequest(request: .status)) {
            do throws(ControlError) {
                guard let status = try answer.get() else { continue }
                if let failure = failure(status) { throw ControlError("\(path): \(failure)") }
                let report = try? JSONDecoder().decode(StatusReport.self, from: Data(status))
                files.append((report?.config ?? path).printable(limit: 1000))
                if files.count == 1, let answer = try ask(path, request) { answers.append(answer) }
            } catch {
                silent.append(error.description)
            }
        }
        guard files.count <= 1 else {
            throw ControlError("several run here; name one: \(Words.list(files))")
        }
        guard let answer = answers.first else {
            guard silent.isEmpty else { throw ControlError(silent.joined(separator: "\n")) }
            throw ControlError("no transportkit runs here: nobody answers in \(folder)")
        }
        for problem in silent { Console.complain("transportkit: \(problem)") }
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
        /// A line with which one device can come.
        case pair
        /// The devices of the box.
        case devices
        /// The same, after one was given a name.
        case name
        /// The same, after one was removed.
        case revoke
    }

    /// What is asked for.
    package var request: Kind
    /// The carrier that is asked about.
    package var carrier: String?
    /// The device that is meant.
    package var device: String?
    /// What it is to be called.
    package var name: String?

    /// Makes a request.
    package init(request: Kind, carrier: String? = nil, device: String? = nil, name: String? = nil) {
        self.request = request
        self.carrier = carrier
        self.device = device
        self.name = name
    }

    func encoded() -> [UInt8] { ControlCoding.line(self) }
}

/// What a host answers. Every `Int64` in it is a time or a duration in seconds, and every `Double` a duration.
package protocol ControlAnswer: Codable {}

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

    /// A line of JSON that somebody else may have written, fit for a terminal: what could move a cursor or turn the
    /// writing round stands escaped, so that it still is the same JSON.
    static func printable(_ line: [UInt8]) -> String {
        var text = String.UnicodeScalarView()
        for scalar in String(decoding: line, as: UTF8.self).unicodeScalars {
            if (0x20..<0x7f).contains(scalar.value) || String(scalar).printable() == String(scalar) {
                text.append(scalar)
            } else if scalar.value < 0x20 {
                // Between tokens; within text JSON allows none.
                text.append(" ")
            } else {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    text.append(contentsOf: "\\u".unicodeScalars)
                    text.append(contentsOf: String(repeating: "0", count: 4 - digits.count).unicodeScalars)
                    text.append(contentsOf: digits.unicodeScalars)
                }
            }
        }
        return String(text)
    }
}
