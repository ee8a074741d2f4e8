import Glibc
import Testing
import TransportIO
import TransportKit

@Suite(.timeLimit(.minutes(1))) struct UDPSocketTests {
    static let loopbackIPv6 = SocketAddress(.ipv6(.loopback, scopeID: 0), port: 0)
    static let anyIPv6 = SocketAddress(.ipv6(.any, scopeID: 0), port: 0)

    @Test(arguments: [SocketAddress.loopback(), loopbackIPv6])
    func `Datagrams arrive whole with both addresses, empty ones too`(local: SocketAddress) async throws {
        try await withLoop { loop in
            let server = try UDPSocket.bind(local, loop: loop)
            let client = try UDPSocket.connect(to: server.localAddress, loop: loop)
            let collector = DatagramCollector()
            server.handler = collector
            #expect(client.send(Bytes("one")).isSent)
            #expect(client.send(Bytes()).isSent)
            #expect(client.send(Bytes(repeating: 7, count: 60_000)).isSent)
            await collector.wait { $0.datagrams.count == 3 }
            #expect(collector.datagrams.map(\.bytes) == [Bytes("one"), Bytes(), Bytes(repeating: 7, count: 60_000)])
            #expect(collector.datagrams.allSatisfy { $0.remote == client.localAddress })
            #expect(collector.datagrams.allSatisfy { $0.local == server.localAddress })
            #expect(client.remoteAddress == server.localAddress)
            client.close()
            server.close()
            server.close()
        }
    }

    @Test func `A batch is sent in few calls and arrives as the datagrams it was made of`() async throws {
        try await withLoop { loop in
            let server = try UDPSocket.bind(.loopback(), loop: loop)
            let client = try UDPSocket.bind(.loopback(), loop: loop)
            let collector = DatagramCollector()
            server.handler = collector
            // More than one call takes, with a short tail.
            let bytes = Bytes((0..<100 * 1200 + 77).map { UInt8(truncatingIfNeeded: $0 / 1200) })
            #expect(client.send(bytes, segmentBytes: 1200, to: server.localAddress).isSent)
            await collector.wait { $0.datagrams.count == 101 }
            #expect(collector.datagrams.map(\.bytes.count) == Array(repeating: 1200, count: 100) + [77])
            #expect(collector.datagrams.map { $0.bytes[0] } == (0...100).map { UInt8($0) })
            #expect(collector.batches < 50)
            #expect(client.canSegment)
            client.close()
            server.close()
        }
    }

    @Test func `Where segmenting is refused the very batch is sent in single datagrams`() async throws {
        // B33
        try await withLoop { loop in
            let lines = RecordingLog()
            let server = try UDPSocket.bind(.loopback(), loop: loop)
            let client = try UDPSocket.bind(.loopback(), loop: loop, log: Log(sink: lines))
            let collector = DatagramCollector()
            server.handler = collector
            // The kernel refuses to segment for a socket without checksums.
            var yes: Int32 = 1
            #expect(setsockopt(client.descriptor, SOL_SOCKET, 11 /* SO_NO_CHECK */, &yes, 4) == 0)
            let bytes = Bytes((0..<9 * 1000 + 1).map { UInt8(truncatingIfNeeded: $0 / 1000) })
            for round in 1...2 {
                #expect(client.send(bytes, segmentBytes: 1000, to: server.localAddress).isSent)
                #expect(!client.canSegment)
                await collector.wait { $0.datagrams.count == 10 * round }
            }
            #expect(collector.datagrams.suffix(10).map { $0.bytes[0] } == (0...9).map { UInt8($0) })
            #expect(lines.lines.filter { $0.message.contains("GSO") }.map(\.level) == [.info])
            client.close()
            server.close()
        }
    }

    @Test func `A datagram too big for the path counts as lost`() async throws {
        try await withLoop { loop in
            let client = try UDPSocket.bind(.loopback(), loop: loop)
            let peer = SocketAddress.loopback(port: client.localAddress.port)
            // The loopback interface takes no more than 65,507 bytes.
            #expect(client.send(Bytes(repeating: 0, count: 65_510), to: peer).isSent)
            #expect(client.canSegment)
            client.close()
        }
    }

    @Test(arguments: [SocketAddress.loopback(), loopbackIPv6], [UInt8(0), 1, 2, 3])
    func `ECN bits cross`(local: SocketAddress, ecn: UInt8) async throws {
        try await withLoop { loop in
            let server = try UDPSocket.bind(local, loop: loop)
            let client = try UDPSocket.connect(to: server.localAddress, loop: loop)
            let collector = DatagramCollector()
            server.handler = collector
            #expect(client.send(Bytes(repeating: 1, count: 40), segmentBytes: 20, ecn: ecn).isSent)
            await collector.wait { $0.datagrams.count == 2 }
            #expect(collector.datagrams.map(\.ecn) == [ecn, ecn])
            client.close()
            server.close()
        }
    }

    @Test(arguments: [SocketAddress(.ipv4(.any), port: 0), anyIPv6])
    func `A socket on a wildcard answers from the address that was asked`(wildcard: SocketAddress) async throws {
        // B66
        try await withLoop { loop in
            let server = try UDPSocket.bind(wildcard, loop: loop)
            let collector = DatagramCollector()
            server.handler = collector
            collector.onDatagram = { datagram in
                server.send(datagram.bytes, to: datagram.remote, from: datagram.local, ecn: datagram.ecn)
            }
            var asked: [SocketAddress] = [2, 9].map {
                SocketAddress(.ipv4(IPv4Address(value: 0x7f00_0000 + $0)), port: server.localAddress.port)
            }
            if wildcard.isIPv6 {
                asked.append(SocketAddress(.ipv6(.loopback, scopeID: 0), port: server.localAddress.port))
            }
            for address in asked {
                // A connected socket takes answers from its peer alone.
                let client = try UDPSocket.connect(to: address, loop: loop)
                let answers = DatagramCollector()
                client.handler = answers
                client.send(Bytes("hello"), ecn: 2)
                await answers.wait { !$0.datagrams.isEmpty }
                #expect(answers.datagrams.map(\.remote) == [address])
                #expect(answers.datagrams.map(\.ecn) == [2])
                #expect(collector.datagrams.last?.local == address)
                #expect(collector.datagrams.last?.remote == client.localAddress)
                client.close()
            }
            server.close()
        }
    }

    @Test(arguments: [SocketAddress.loopback(), loopbackIPv6])
    func `A connected socket hears of a refusal and stays usable`(local: SocketAddress) async throws {
        // R35
        try await withLoop { loop in
            let gone = try UDPSocket.bind(local, loop: loop)
            gone.close()
            let client = try UDPSocket.connect(to: gone.localAddress, loop: loop)
            let collector = DatagramCollector()
            client.handler = collector
            client.send(Bytes("anybody there?"))
            await collector.wait { !$0.errors.isEmpty }
            #expect(collector.errors.allSatisfy { $0.code == .refused })
            let back = try UDPSocket.bind(gone.localAddress, loop: loop)
            let arrived = DatagramCollector()
            back.handler = arrived
            #expect(client.send(Bytes("and now?")).isSent)
            await arrived.wait { !$0.datagrams.isEmpty }
            #expect(arrived.datagrams.map(\.bytes) == [Bytes("and now?")])
            client.close()
            back.close()
        }
    }

    @Test func `ICMP errors do not touch a socket that serves many`() async throws {
        try await withLoop { loop in
            let gone = try UDPSocket.bind(.loopback(), loop: loop)
            gone.close()
            let server = try UDPSocket.bind(.loopback(), loop: loop)
            let collector = DatagramCollector()
            server.handler = collector
            for _ in 0..<3 { #expect(server.send(Bytes("lost"), to: gone.localAddress).isSent) }
            #expect(server.send(Bytes("to myself"), to: server.localAddress).isSent)
            await collector.wait { !$0.datagrams.isEmpty }
            #expect(collector.errors.isEmpty)
            server.close()
        }
    }

    @Test func `What this machine forbids is told as blocked`() async throws {
        // R35
        try await withLoop { loop in
            let socket = try UDPSocket.bind(SocketAddress(.ipv4(.any), port: 0), loop: loop)
            // Broadcast without permission is EACCES.
            let broadcast = SocketAddress(.ipv4(IPv4Address(value: .max)), port: 9)
            #expect(socket.send(Bytes("x"), to: broadcast).error?.code == .blocked)
            #expect(socket.send(Bytes("x"), to: .loopback(port: socket.localAddress.port)).isSent)
            socket.close()
            #expect(socket.send(Bytes("x"), to: broadcast).error?.code == .misuse)
        }
    }

    @Test func `An address in use is told as such`() async throws {
        try await withLoop { loop in
            let first = try UDPSocket.bind(.loopback(), loop: loop)
            let error = #expect(throws: TransportError.self) {
                try UDPSocket.bind(first.localAddress, loop: loop)
            }
            #expect(error?.code == .addressInUse)
            first.close()
        }
    }

    @Test func `Sockets share a port where they ask for it`() async throws {
        try await withLoop { loop in
            let first = try UDPSocket.bind(.loopback(), loop: loop, reusePort: true)
            let second = try UDPSocket.bind(first.localAddress, loop: loop, reusePort: true)
            #expect(first.localAddress == second.localAddress)
            first.close()
            second.close()
        }
    }
}
