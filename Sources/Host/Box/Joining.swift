internal import Glibc
internal import MuxCarrier
internal import NoiseCarrier
internal import TransportIO
internal import TransportKit
internal import TransportTLS
internal import TunnelCarrier

/// Makes a new device of a box out of a pairing line: reaches the box once, and writes a config file that does it again.
package enum Joining {
    /// What a device is told beside the line.
    package struct Settings: Sendable {
        /// The config file to write.
        package var config: String
        /// The file of the device's key; without it `device.key` beside the config file.
        package var key: String?
        /// A file with the certificates that are trusted; nil for the machine's own.
        package var trustFile: String?
        /// The local port of the first service.
        package var port: UInt16 = 8080
        /// How long to try.
        package var timeout = Duration.seconds(30)

        package init(config: String) {
            self.config = config
        }
    }

    /// What has become of it.
    package struct Report: Codable, Sendable {
        package var config: String
        package var key: String
        package var home: String
        /// The public key of this device.
        package var device: String
        /// The local address of each service.
        package var services: [String: String]

        /// The report as one line of JSON.
        package var json: String { String(decoding: ControlCoding.line(self), as: UTF8.self) }

        /// As a person reads it.
        package var lines: [String] {
            var lines = ["paired with the home \(home), as device \(device)"]
            lines += services.sorted { $0.value < $1.value }.map { "\($0.key) will be at \($0.value)" }
            return lines + ["now run: transportkit run \(config)"]
        }
    }

    /// Reads the line from standard input and joins.
    package static func run(_ settings: Settings) async throws -> Report {
        guard !FileCheck.exists(settings.config) else { throw taken(settings.config) }
        if isatty(STDIN_FILENO) == 1 { Console.complain("Paste the pairing line of the box and press Enter:") }
        guard let text = readLine(strippingNewline: true) else {
            throw TransportError(
                .misuse, "there is no pairing line on standard input; the box prints it: transportkit pair")
        }
        let line = try PairingLine(text)
        let keyFile = settings.key ?? beside(settings.config, "device.key")
        if !FileCheck.exists(keyFile) { _ = try KeyFile.make(keyFile) }
        let key = try KeyFile.read(keyFile)
        let names = try await HostProgram.withLoop { loop in
            try await reach(line, key: key, settings: settings, loop: loop)
        }
        // The code is used up by now, so ports that do not suffice are no reason to fail.
        let first = min(Int(settings.port), 65_536 - names.count)
        let services = Dictionary(
            uniqueKeysWithValues: names.enumerated().map { index, name in (name, "tcp://127.0.0.1:\(first + index)") })
        try write(config(line, services, settings: settings, keyFile: keyFile), to: settings.config)
        return Report(
            config: settings.config, key: keyFile, home: "\(line.home)", device: "\(key.publicKey)", services: services)
    }

    private static func taken(_ path: String) -> TransportError {
        TransportError(.misuse, "\(path) is there already and is not overwritten; name another file")
    }

    private static func beside(_ path: String, _ name: String) -> String {
        path.split(separator: "/", omittingEmptySubsequences: false).dropLast().map { "\($0)/" }.joined() + name
    }

    // MARK: - The first session

    /// Shows the code to the box, once, and asks what it offers. An answer proves that the box knows this device now.
    private static func reach(
        _ line: PairingLine, key: StaticPrivateKey, settings: Settings, loop: EventLoop
    ) async throws -> [String] {
        var door = line.door
        if door.target == .root, let target = LinkRole.app.target { door.target = target }
        var dial = DialSettings(url: door, pins: line.pins, trustFile: settings.trustFile)
        dial.role = .app
        let code = line.code
        var tunnelSettings = TunnelSettings(key: key, home: line.home, doorKeys: line.doorKeys)
        tunnelSettings.pairingCode = { code }
        var noise = NoiseSettings()
        noise.payload = { code }
        let tunnel = TunnelCarrier(
            through: try dial.makeCarrier(loop: loop, log: Log()) { _ in }, settings: tunnelSettings, executor: loop,
            time: loop)
        let sealed = NoiseCarrier(
            over: tunnel, key: key, peer: line.boxKey, settings: noise, executor: loop, time: loop)
        let carrier = MuxCarrier(over: sealed, executor: loop, time: loop)
        do {
            let names = try await Deadline.run(settings.timeout, time: loop) {
                while true {
                    do {
                        return try await services(over: carrier)
                    } catch let close as Close where close.code == .nobodyThere {
                        // The box is not linked just now, or restarts.
                        try await loop.sleep(for: .milliseconds(500))
                    }
                }
            }
            await carrier.close()
            return names
        } catch {
            let last = tunnel.states.latest
            await carrier.close()
            if let close = error as? Close, close.code == .refused {
                throw TransportError(
                    .misuse,
                    "the door lets nobody in with this line: it was used, or is older than ten minutes; have the "
                        + "box make a new one")
            }
            guard error is Deadline.Passed else { throw error }
            throw TransportError(
                .timedOut,
                "the box was not reached within \(settings.timeout.inWords) (\("\(last)".printable())); see that it runs and "
                    + "is linked to its door, and have it make a new line if this one is older than ten minutes")
        }
    }

    private static func services(over carrier: MuxCarrier) async throws -> [String] {
        let socket = try await carrier.open()
        let stream = try await socket.openStream()
        try await stream.write(ForwardHeader.request(.list))
        try await stream.finish()
        var reader = ForwardHeader.AnswerReader()
        var text = Bytes()
        var isOpen = false
        while true {
            if !isOpen {
                switch try reader.next() {
                case .open:
                    isOpen = true
                    text = reader.rest
                case .refused(let refusal): throw refusal
                case nil: break
                }
            }
            guard let bytes = try await stream.read(upTo: 65_536), text.count <= 65_536 else { break }
            if isOpen { text.append(contentsOf: bytes) } else { reader.feed(bytes) }
        }
        let names = String(decoding: Array(text), as: UTF8.self).split(separator: "\n").map(String.init)
        // They go into a file, and a box is not trusted with more than names.
        return Array(Set(names.filter(ForwardTarget.isName)).sorted().prefix(64))
    }

    // MARK: - The config file

    private static func config(
        _ line: PairingLine, _ services: [String: String], settings: Settings, keyFile: String
    ) -> String {
        func quoted(_ text: String) -> String { Value.text(text).json }
        var tls = ""
        if !line.pins.isEmpty {
            tls = ", tls: { pin: [\(line.pins.map { quoted("\($0)") }.joined(separator: ", "))] }"
        } else if let file = settings.trustFile {
            tls = ", tls: { trust: \(quoted(absolute(file))) }"
        }
        let url = line.door.target == .root ? "\(line.door.endpoint)" : line.door.wireForm
        let keys = line.doorKeys.map { quoted("\($0)") }.joined(separator: ", ")
        let forwards = services.sorted { $0.value < $1.value }.map { name, address in
            "  - { listen: \(quoted(address)), carrier: home, to: \(quoted(name)) }\n"
        }
        return """
            # Made by `transportkit pair --join`. It holds no secret; the key of this device lies in its own file.
            keys: { device: \(quoted(settings.key.map(absolute) ?? "device.key")) }
            carriers:
              door: { kind: direct, url: \(quoted(url))\(tls) }
              tunnel: { kind: tunnel, through: door, doorKeys: [\(keys)], home: \(quoted("\(line.home)")) }
              home: { kind: noise, over: tunnel, peer: \(quoted("\(line.boxKey)")) }
            forwards:
            \(forwards.joined())
            """
    }

    /// File names in a config file start at its folder, those of a command where it was given.
    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let here = unsafe getcwd(nil, 0) else { return path }
        defer { unsafe free(here) }
        return unsafe "\(String(cString: here))/\(path)"
    }

    private static func write(_ text: String, to path: String) throws(TransportError) {
        let draft = "\(path).\(getpid()).new"
        try TLSFile.write(Bytes(text), to: draft, mode: 0o644)
        defer { unsafe unlink(draft) }
        // A link never takes the place of anything.
        guard unsafe link(draft, path) == 0 else {
            throw errno == EEXIST ? taken(path) : TransportError(errno: errno, doing: "writing \(path)")
        }
    }
}
