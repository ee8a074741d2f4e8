internal import Foundation
internal import Synchronization
internal import TransportIO

/// Runs a test on the rig and removes everything it made, whatever happens.
package func withRig<Result>(_ body: (Rig) async throws -> Result) async throws -> Result {
    await Rig.sweepOnce.value
    let rig = try Rig()
    do {
        let result = try await body(rig)
        await rig.remove()
        return result
    } catch {
        let transcript = rig.transcript
        await rig.remove()
        throw transcript.isEmpty ? error : RigFailure("\(error)\n\(transcript)")
    }
}

/// The owner of everything that one test makes: namespaces, links, programs, sockets' loops, files.
///
/// Names of all of it carry this process's id, so that a later run finds what a crashed one left behind.
package final class Rig: Sendable {
    private static let prefix = "tkrig"
    private static let count = Atomic(0)
    private static let temporary = FileManager.default.temporaryDirectory.path

    private struct Kept {
        var namespaces: [Namespace] = []
        var programs: [Program] = []
        var loops: [EventLoop] = []
        var tasks: [Task<Void, Never>] = []
    }

    /// A directory for files, which goes with the rig.
    package let folder: String
    private let number: Int
    private let kept = Mutex(Kept())

    fileprivate init() throws {
        // A program that ended is noticed by its exit, not by a signal for whoever writes to it.
        signal(SIGPIPE, SIG_IGN)
        number = Self.count.add(1, ordering: .relaxed).newValue
        folder = "\(Self.temporary)/\(Self.name(getpid(), number, "files"))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    // MARK: - Making

    /// Makes a namespace with its loopback interface up, IPv4 and IPv6.
    package func makeNamespace(_ role: String, forwards: Bool = false) async throws -> Namespace {
        let namespace = Namespace(role: role, rig: self)
        try await runTool(["ip", "netns", "add", namespace.name])
        kept.withLock { $0.namespaces.append(namespace) }
        // IPv6 addresses are there at once, and stay when a link goes down, as IPv4's do.
        var settings = ["all", "default"].flatMap { which in
            ["accept_dad=0", "keep_addr_on_down=1"].map { "net.ipv6.conf.\(which).\($0)" }
        }
        if forwards { settings += ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] }
        try await runTool(["ip", "netns", "exec", namespace.name, "sysctl", "-qw"] + settings)
        try await namespace.ip("link set lo up")
        return namespace
    }

    /// One end of a link: an interface, and its addresses with their prefix lengths.
    package struct End {
        let namespace: Namespace
        let interface: String
        let addresses: [String]

        package init(_ namespace: Namespace, _ interface: String, _ addresses: String...) {
            self.namespace = namespace
            self.interface = interface
            self.addresses = addresses
        }

        fileprivate var lines: String {
            let addresses = addresses.map { "address add \($0) dev \(interface)\($0.contains(":") ? " nodad" : "")\n" }
            return addresses.joined() + "link set \(interface) up"
        }
    }

    /// Joins two namespaces by an Ethernet cable that delivers everything at once.
    package func makeCable(_ a: End, _ b: End) async throws {
        try await runTool([
            "ip", "link", "add", a.interface, "netns", a.namespace.name, "type", "veth", "peer", "name", b.interface,
            "netns", b.namespace.name,
        ])
        for end in [a, b] {
            try await end.namespace.ip(end.lines)
            try await end.namespace.awaitAddresses(end.addresses)
        }
    }

    /// Joins two namespaces by a link whose delays and losses the test decides on; `seed` makes chance repeat itself.
    package func makeShapedLink(_ a: End, _ b: End, seed: UInt64? = nil) async throws -> LinkShaper {
        let seed = seed ?? ProcessInfo.processInfo.environment["RIG_SEED"].flatMap { UInt64($0) }
        let program = keep(
            try Program(
                "linkshaper",
                [
                    Built.linkshaper, "a=\(a.namespace.name):\(a.interface)", "b=\(b.namespace.name):\(b.interface)",
                ] + (seed.map { ["seed=\($0)"] } ?? [])))
        let shaper = try await LinkShaper(program)
        for end in [a, b] {
            // Room for what comes while the shaper's process waits for its turn.
            try await end.namespace.ip("link set \(end.interface) txqueuelen 10000", end.lines)
            try await end.namespace.awaitAddresses(end.addresses)
        }
        return shaper
    }

    func keep(_ program: Program) -> Program {
        kept.withLock { $0.programs.append(program) }
        return program
    }

    func keep(_ loop: EventLoop) -> EventLoop {
        kept.withLock { $0.loops.append(loop) }
        return loop
    }

    /// Runs `work` until the rig is removed, which cancels it.
    package func run(_ work: @escaping @Sendable () async -> Void) {
        let task = Task { await work() }
        kept.withLock { $0.tasks.append(task) }
    }

    /// What a namespace with that role is called.
    package static func name(_ process: Int32, _ number: Int, _ role: String) -> String {
        "\(prefix)-\(process)-\(number)-\(role)"
    }

    func name(_ role: String) -> String { Self.name(getpid(), number, role) }

    /// `ip netns exec` shows this file to programs in place of /etc/resolv.conf.
    func writeResolver(_ address: String, for namespace: Namespace) throws {
        let folder = "/etc/netns/\(namespace.name)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try write("nameserver \(address)\noptions timeout:1 attempts:2\n", to: "\(folder)/resolv.conf")
    }

    /// Writes a file and returns its path; a relative one is inside `folder`.
    @discardableResult
    package func write(_ text: String, to path: String) throws -> String {
        let path = path.hasPrefix("/") ? path : "\(folder)/\(path)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// What the programs wrote.
    package var transcript: String {
        kept.withLock { $0.programs }.map(\.transcript).filter { !$0.isEmpty }.joined(separator: "\n")
    }

    // MARK: - Removing

    fileprivate func remove() async {
        let kept = kept.withLock { kept in
            defer { kept = Kept() }
            return kept
        }
        // Removal goes on where the test's task was cancelled.
        await Task.detached { [folder] in
            for task in kept.tasks { task.cancel() }
            for program in kept.programs {
                do { try await program.kill() } catch { print("the rig could not end \(program.name): \(error)") }
            }
            for task in kept.tasks { await task.value }
            for loop in kept.loops { await loop.shutdown() }
            await Self.removeNamespaces(kept.namespaces.map(\.name))
            try? FileManager.default.removeItem(atPath: folder)
        }.value
    }

    private static func removeNamespaces(_ names: [String]) async {
        for name in names {
            do {
                let processes = try await runTool(["ip", "netns", "pids", name])
                // To `kill`, 0 and less are whole groups of processes.
                for process in processes.split(whereSeparator: \.isWhitespace).compactMap({ Int32($0) })
                where process > 0 { kill(process, SIGKILL) }
                try await runTool(["ip", "netns", "delete", name])
            } catch {
                print("the rig could not remove \(name): \(error)")
            }
            try? FileManager.default.removeItem(atPath: "/etc/netns/\(name)")
        }
    }

    fileprivate static let sweepOnce = Task { await sweep() }

    /// Removes what runs left behind whose process is gone. The first rig of a process does it.
    package static func sweep() async {
        func isStale(_ name: String) -> Bool {
            let parts = name.split(separator: "-")
            guard parts.count >= 3, parts[0] == prefix, let process = Int32(parts[1]) else { return false }
            return process > 0 && kill(process, 0) != 0 && errno == ESRCH
        }
        let files = FileManager.default
        let names = (try? files.contentsOfDirectory(atPath: "/run/netns")) ?? []
        await removeNamespaces(names.filter(isStale))
        let folders = (try? files.contentsOfDirectory(atPath: temporary)) ?? []
        for folder in folders where isStale(folder) {
            try? files.removeItem(atPath: "\(temporary)/\(folder)")
        }
    }
}
