internal import CRig
package import TransportIO

/// A network namespace: a machine of its own, as far as its network goes.
package final class Namespace: Sendable {
    /// What the test calls it, for example `client`.
    package let role: String
    /// What `ip netns` calls it.
    package let name: String
    /// The file that stands for it.
    package var path: String { "/run/netns/\(name)" }

    private unowned let rig: Rig

    init(role: String, rig: Rig) {
        self.role = role
        self.rig = rig
        name = rig.name(role)
    }

    // MARK: - Settings

    /// Runs lines of `ip`, for example `link set eth0 down`, in this namespace.
    package func ip(_ lines: String...) async throws {
        try await runTool(["ip", "-n", name, "-batch", "-"], input: lines.joined(separator: "\n") + "\n")
    }

    /// Waits until packets to IPv6 addresses that were added are taken: the kernel sets that up a moment later.
    package func awaitAddresses(_ addresses: [String]) async throws {
        let addresses = addresses.filter { $0.contains(":") }.map { $0.prefix { $0 != "/" } }
        guard !addresses.isEmpty else { return }
        _ = try await eventually("the addresses \(addresses) of \(role)", within: .seconds(10), every: .milliseconds(5))
        {
            let routes = try await runTool(["ip", "-n", name, "-6", "route", "show", "table", "local"])
            return addresses.allSatisfy { routes.contains("local \($0) ") } ? true : nil
        }
    }

    /// Changes a setting such as `net.ipv4.ip_forward`.
    package func sysctl(_ key: String, _ value: Int) async throws {
        try await run("sysctl", "-qw", "\(key)=\(value)")
    }

    /// Runs a script of `nft` in this namespace and returns what it wrote.
    @discardableResult
    package func nft(_ script: String) async throws -> String {
        try await runTool(["ip", "netns", "exec", name, "nft", "-e", "-a", "-f", "-"], input: script + "\n")
    }

    /// Says where names are looked up in this namespace.
    package func useResolver(_ address: String) throws {
        try rig.writeResolver(address, for: self)
    }

    /// Gives an interface one more address of the network that it is in.
    package func addAddress(_ address: String, to interface: String) async throws {
        let isIPv6 = address.contains(":")
        try await ip("address add \(address)/\(isIPv6 ? 64 : 24) dev \(interface)\(isIPv6 ? " nodad" : "")")
        try await awaitAddresses([address])
    }

    package func removeAddress(_ address: String, from interface: String) async throws {
        try await ip("address delete \(address)/\(address.contains(":") ? 64 : 24) dev \(interface)")
    }

    /// Takes an interface down, as when a cable is pulled or the radio lost; its addresses stay, its default routes go.
    package func linkDown(_ interface: String) async throws { try await ip("link set \(interface) down") }
    package func linkUp(_ interface: String) async throws { try await ip("link set \(interface) up") }

    // MARK: - Programs and sockets

    /// Runs a program here to its end.
    @discardableResult
    package func run(_ words: String..., within limit: Duration = .seconds(20)) async throws -> String {
        try await runTool(["ip", "netns", "exec", name] + words, within: limit)
    }

    /// Starts a program here; `words` begin with its path.
    package func start(
        _ program: String, _ words: [String], environment: [String: String] = [:], folder: String? = nil
    ) throws -> Program {
        // `ip netns exec` turns into the program, so that the process id is the program's.
        let inside = ["ip", "netns", "exec", name] + words
        return rig.keep(try Program(program, inside, environment: environment, folder: folder))
    }

    /// Starts `transportkit`, as it was built, here.
    package func startTransportKit(
        _ name: String, _ words: [String], environment: [String: String] = [:]
    ) throws -> Program {
        try start(name, [Built.transportkit] + words, environment: environment)
    }

    /// Runs `transportkit` here to its end, for example with `check`, and returns its output.
    package func runTransportKit(_ words: [String], within limit: Duration = .seconds(20)) async throws -> String {
        try await runTool(["ip", "netns", "exec", name, Built.transportkit] + words, within: limit)
    }

    /// Makes an event loop whose thread is in this namespace, and so all the sockets that it makes. The rig ends it.
    package func makeLoop() async throws -> EventLoop {
        let loop = rig.keep(try EventLoop(name: role))
        let result = try await loop.run { [path] in rig_enter(path) }
        guard result == 0 else { throw RigFailure("a loop cannot enter \(name): errno \(-result)") }
        return loop
    }

    /// Opens a UDP socket here; port 0 lets the system choose.
    package func bindUDP(_ address: String, port: UInt16 = 0) throws -> RawSocket {
        try RawSocket.bind(.udp, address, port, path: path)
    }

    package func connectUDP(_ address: String, port: UInt16) throws -> RawSocket {
        try RawSocket.connect(.udp, address, port, path: path, within: .zero)
    }

    /// Opens a listening TCP socket here.
    package func listenTCP(_ address: String, port: UInt16 = 0) throws -> RawSocket {
        try RawSocket.bind(.tcp, address, port, path: path)
    }

    package func connectTCP(
        _ address: String, port: UInt16, within limit: Duration = .seconds(5)
    ) async throws -> RawSocket {
        try await blocking { [path] in try RawSocket.connect(.tcp, address, port, path: path, within: limit) }
    }
}
