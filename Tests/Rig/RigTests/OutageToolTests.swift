import Glibc
import RigSupport
import Testing

extension RigSuite {
    /// The rig's ways to break a network, each seen from the machine that suffers.
    @Suite(.timeLimit(.minutes(2))) struct OutageToolTests {
        /// A UDP socket of the client, one at the door, and what the door sees of the client.
        private struct Talk: Sendable {
            let client: RawSocket
            let door: RawSocket

            init(_ net: Topology, port: UInt16 = 5000, address: String = Topology.doorAddress) throws {
                door = try net.door.bindUDP(address, port: port)
                client = try net.client.connectUDP(address, port: port)
            }

            /// Sends a datagram there and back and returns the port it came from.
            func port(within limit: Duration = .seconds(5)) async throws -> UInt16 {
                try await blocking {
                    try client.send([1])
                    let datagram = try door.receiveDatagram(within: limit)
                    try door.send([2], to: (datagram.address, datagram.port))
                    #expect(try client.receive(within: limit) == [2])
                    return datagram.port
                }
            }

            /// What the client meets where no answer comes.
            func failure() async -> Int32? {
                do {
                    try await blocking {
                        try client.send([1])
                        if let datagram = try? door.receiveDatagram(within: .milliseconds(200)) {
                            try door.send([2], to: (datagram.address, datagram.port))
                        }
                        _ = try client.receive(within: .milliseconds(200))
                    }
                    return nil
                } catch {
                    return (error as? RawSocket.Failure)?.errno ?? -1
                }
            }
        }

        @Test func `The NAT hides the client, and gives a live flow another port when it forgets it`() async throws {
            try await withTopology { net in
                for address in [Topology.doorAddress, Topology.doorAddress6] {
                    let talk = try Talk(net, address: address)
                    let first = try await talk.port()
                    #expect(try await talk.port() == first)
                    try await net.nat.rebindUDP()
                    #expect(try await talk.port() != first)
                    // Strangers stay outside.
                    let source = try await blocking {
                        try talk.client.send([1])
                        return try talk.door.receiveDatagram()
                    }
                    #expect(source.address == (address.contains(":") ? "2001:db8:1::2" : "203.0.113.6"))
                    let stranger = try net.internet.connectUDP(source.address, port: source.port)
                    try await blocking { try stranger.send([9]) }
                    await #expect(throws: RawSocket.Failure.self) {
                        try await blocking { try talk.client.receive(within: .milliseconds(200)) }
                    }
                }
            }
        }

        @Test func `A quiet flow loses its mapping after the time that was set`() async throws {
            try await withTopology { net in
                try await net.nat.setMappingLife(udp: 1, tcp: 1)
                let talk = try Talk(net)
                let first = try await talk.port()
                // The door's answers find nobody once the mapping is gone.
                _ = try await eventually("the end of the mapping", within: .seconds(20), every: .milliseconds(1_200)) {
                    try await talk.port() != first ? true : nil
                }
            }
        }

        @Test func `A firewall is silent, or says no, or says it to the program`() async throws {
            try await withTopology { net in
                let talk = try Talk(net)
                #expect(await talk.failure() == nil)
                let drop = try await net.nat.firewall.drop(.udp)
                #expect(await talk.failure() == ETIMEDOUT)
                try await net.nat.firewall.remove(drop)
                #expect(await talk.failure() == nil)
                let reject = try await net.nat.firewall.reject(.udp)
                #expect(await talk.failure() == ECONNREFUSED)
                try await net.nat.firewall.remove(reject)
                let own = try await net.client.firewall.drop(.udp, .output)
                #expect(await talk.failure() == EPERM)
                try await net.client.firewall.remove(own)
                #expect(await talk.failure() == nil)

                let listener = try net.door.listenTCP(Topology.doorAddress)
                _ = try await net.client.connectTCP(Topology.doorAddress, port: listener.port)
                let reset = try await net.nat.firewall.reject(.tcp)
                await #expect(throws: RawSocket.Failure.self) {
                    try await net.client.connectTCP(Topology.doorAddress, port: listener.port)
                }
                // A rule for one does not touch the other.
                #expect(await talk.failure() == nil)
                try await net.nat.firewall.remove(reset)
                _ = try await net.client.connectTCP(Topology.doorAddress, port: listener.port)
            }
        }

        @Test func `A portal answers in place of the door until it opens`() async throws {
            try await withTopology { net in
                let door = try net.door.listenTCP(Topology.doorAddress, port: 8443)
                let portal = try net.nat.listenTCP("0.0.0.0", port: 1443)
                func whoAnswers() async throws -> String {
                    let client = try await net.client.connectTCP(Topology.doorAddress, port: 8443)
                    defer { client.close() }
                    for (name, listener) in [("door", door), ("portal", portal)] {
                        let accepted = try? await blocking { try listener.accept(within: .milliseconds(200)) }
                        if accepted != nil { return name }
                    }
                    return "nobody"
                }
                #expect(try await whoAnswers() == "door")
                try await net.nat.interceptTCP(port: 8443, to: 1443)
                #expect(try await whoAnswers() == "portal")
                try await net.nat.stopIntercepting()
                #expect(try await whoAnswers() == "door")
            }
        }

        @Test func `An address may be a black hole, or refused at once`() async throws {
            try await withTopology { net in
                try await net.internet.ip("route add blackhole 198.51.100.30", "route add unreachable 198.51.100.31")
                for (address, expected) in [("198.51.100.30", ETIMEDOUT), ("198.51.100.31", EHOSTUNREACH)] {
                    do {
                        _ = try await net.client.connectTCP(address, port: 1, within: .milliseconds(700))
                        Issue.record("somebody answered at \(address)")
                    } catch let failure as RawSocket.Failure {
                        #expect(failure.errno == expected, "\(address): \(failure)")
                    }
                }
            }
        }

        @Test func `The client moves to another network, loses both, and comes back`() async throws {
            try await withTopology(.secondNetwork) { net in
                let talk = try Talk(net)
                _ = try await talk.port()
                let before = try await net.away.link.report().aToB.udp
                try await net.useNetwork(net.away)
                // A socket that is bound to no address follows the route with its next datagram; this one was connected.
                let moved = try Talk(net, port: 5001)
                _ = try await moved.port()
                #expect(try await net.away.link.report().aToB.udp > before)
                try await net.loseRoutes()
                #expect(throws: RawSocket.Failure.self) { try net.client.connectUDP(Topology.doorAddress, port: 5001) }
                try await net.useNetwork(net.home)
                try await net.client.linkDown("eth0")
                #expect(throws: RawSocket.Failure.self) { try net.client.connectUDP(Topology.doorAddress, port: 5001) }
                try await net.client.linkUp("eth0")
                try await net.useNetwork(net.home)
                #expect(await talk.failure() == nil)
            }
        }

        @Test func `A packet that does not fit on the way is answered with what does`() async throws {
            try await withTopology { net in
                try await net.nat.ip("link set wan0 mtu 1280")
                let listener = try net.door.listenTCP(Topology.doorAddress)
                let client = try await net.client.connectTCP(Topology.doorAddress, port: listener.port)
                let door = try await blocking { try listener.accept() }
                let bytes = [UInt8](repeating: 7, count: 200_000)
                async let sent: Void = blocking { try client.send(bytes) }
                #expect(try await blocking { try door.receive(exactly: bytes.count) } == bytes)
                try await sent
                let route = try await net.client.run("ip", "route", "get", Topology.doorAddress)
                #expect(route.contains("mtu 1280"), "the client was told: \(route)")
            }
        }

        @Test func `Names are answered, changed, refused and left unanswered`() async throws {
            try await withTopology(.resolver) { net in
                let names = try NameServer(in: net.resolver, rig: net.rig)
                names.set("door.test", [Topology.doorAddress, Topology.doorAddress6])
                func look(_ name: String, _ kind: String = "ahostsv4") async -> String? {
                    try? await net.client.run("getent", kind, name)
                }
                #expect(try #require(await look("door.test")).contains(Topology.doorAddress))
                #expect(try #require(await look("door.test", "ahostsv6")).contains(Topology.doorAddress6))
                #expect(await look("nobody.test") == nil)
                names.set("door.test", ["198.51.100.11"])
                #expect(try #require(await look("door.test")).contains("198.51.100.11"))
                names.set(.failing)
                #expect(await look("door.test") == nil)
                names.set(.silent)
                #expect(await look("door.test") == nil)
                #expect(names.questions >= 6)
            }
        }

        @Test func `A process that is frozen stands still, and one that is killed is gone`() async throws {
            try await withRig { rig in
                let machine = try await rig.makeNamespace("machine")
                let program = try machine.start("ticks", ["sh", "-c", "while :; do echo tick; sleep 0.01; done"])
                _ = try await program.output.line(containing: "tick")
                program.freeze()
                let state = try await eventually("the freeze", within: .seconds(5)) {
                    try await runTool(["ps", "-o", "state=", "-p", "\(program.id)"]) == "T" ? "T" : nil
                }
                #expect(state == "T")
                let count = program.output.count
                program.thaw()
                _ = try await program.output.line(containing: "tick", from: count)
                try await program.kill()
                #expect(try await program.exitCode(within: .seconds(1)) == -SIGKILL)
                await #expect(throws: RigFailure.self) { try await program.output.line(containing: "tock") }
            }
        }

        @Test func `One process has a clock of its own that jumps`() async throws {
            try await withRig { rig in
                let machine = try await rig.makeNamespace("machine")
                let clock = try await ProcessClock(rig)
                let program = try machine.start(
                    "dates", ["sh", "-c", "while read line; do date +%s; done"], environment: clock.environment)
                func ask() async throws -> Int {
                    let count = program.output.count
                    try program.write("now\n")
                    return try #require(Int(try await program.output.line(from: count) { _ in true }.text))
                }
                let start = try await ask()
                try clock.sleep(for: .seconds(3_600))
                #expect((3_600...3_660).contains(try await ask() - start))
                try clock.moveWall(by: .seconds(-86_400))
                #expect((-82_800...(-82_740)).contains(try await ask() - start))
            }
        }

        @Test func `An event loop inside a namespace makes its sockets there`() async throws {
            try await withTopology { net in
                let echo = try await EchoService(in: net.door, port: 7000, rig: net.rig)
                let socket = try await net.door.connectTCP("127.0.0.1", port: echo.port)
                #expect(try await socket.echo([1, 2, 3]) == [1, 2, 3])
                await #expect(throws: RawSocket.Failure.self) {
                    try await net.client.connectTCP("127.0.0.1", port: echo.port)
                }
            }
        }

        // MARK: - Removal

        private func namespaces() async throws -> [String] {
            try await runTool(["ip", "netns", "list"]).split(separator: "\n").map { line in
                String(line.prefix { $0 != " " })
            }
        }

        @Test func `Everything is removed, also after a failure`() async throws {
            struct Expected: Error {}
            var names: [String] = []
            var process: Int32 = 0
            let failure = await #expect(throws: RigFailure.self) {
                try await withTopology { net in
                    names = [net.client.name, net.nat.name, net.door.name]
                    let program = try net.client.start("sleeper", ["sh", "-c", "echo here; exec sleep 1000"])
                    _ = try await program.output.line(containing: "here")
                    process = program.id
                    #expect(Set(try await namespaces()).isSuperset(of: names))
                    throw Expected()
                }
            }
            #expect("\(try #require(failure))".contains("sleeper out | here"), "the failure says what programs wrote")
            #expect(Set(try await namespaces()).isDisjoint(with: names))
            #expect(process > 0 && kill(process, 0) != 0)
        }

        @Test func `What a crashed run left behind is swept up`() async throws {
            try await withRig { rig in
                let machine = try await rig.makeNamespace("machine")
                let gone = try machine.start("gone", ["true"])
                _ = try await gone.exitCode(within: .seconds(5))
                let stale = Rig.name(gone.id, 1, "client")
                try await runTool(["ip", "netns", "add", stale])
                // Started as a process that the rig does not know.
                try await runTool(["sh", "-c", "ip netns exec \(stale) sleep 1000 > /dev/null 2>&1 &"])
                let process = try await eventually("the sleeper", within: .seconds(5)) {
                    Int32(try await runTool(["ip", "netns", "pids", stale]))
                }
                await Rig.sweep()
                let names = try await namespaces()
                #expect(!names.contains(stale))
                #expect(names.contains(machine.name), "those of live processes stay")
                _ = try await eventually("its end", within: .seconds(5)) { kill(process, 0) != 0 ? true : nil }
            }
        }
    }
}
