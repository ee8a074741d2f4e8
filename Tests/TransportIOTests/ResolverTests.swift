import Glibc
import Testing
import TransportIO
import TransportKit

@Suite(.timeLimit(.minutes(1))) struct ResolverTests {
    static func address(_ text: String) throws -> SocketAddress {
        switch try #require(Host(text)) {
        case .ipv4(let address): SocketAddress(.ipv4(address), port: 443)
        case .ipv6(let address, _): SocketAddress(.ipv6(address, scopeID: 0), port: 443)
        case .name: throw TransportError(.misuse, "not an address")
        }
    }

    @Test func `A written-out address needs no lookup`() async throws {
        for text in ["127.0.0.1", "[::1]"] {
            let found = try await Resolver.addresses(
                of: try #require(Host(text)), port: 443, timeout: .seconds(1), time: ManualTime()
            ) { _, _ in
                Issue.record("looked up")
                return []
            }
            #expect(found == [try Self.address(text)])
        }
        let scoped = try await Resolver.addresses(of: .ipv6(.loopback, scope: "lo"), port: 1)
        #expect(scoped == [SocketAddress(.ipv6(.loopback, scopeID: 1), port: 1)])
        let error = await #expect(throws: TransportError.self) {
            try await Resolver.addresses(of: .ipv6(.loopback, scope: "nosuch0"), port: 1)
        }
        #expect(error?.code == .unreachable)
    }

    @Test func `The system knows localhost and no name under invalid`() async throws {
        let found = try await Resolver.addresses(of: .name("localhost"), port: 80)
        #expect(found.contains(.loopback(port: 80)))
        let error = await #expect(throws: TransportError.self) {
            try await Resolver.addresses(of: .name("nobody.invalid"), port: 80)
        }
        #expect(error?.code == .nameNotFound)
    }

    // B17
    @Test func `While the resolver gives no answer a name keeps its last address, for a day`() async throws {
        let time = ManualTime()
        let known = KnownAddresses()
        let last = try Self.address("192.0.2.1")
        func look(
            port: UInt16 = 443, _ lookup: @escaping Resolver.Lookup
        ) async throws(TransportError) -> [SocketAddress] {
            try await Resolver.addresses(
                of: .name("door.test"), port: port, timeout: .seconds(10), time: time, known: known, lookup: lookup)
        }
        let again = TransportError(.nameNotFound, "later", number: 3)
        await #expect(throws: again) { try await look { _, _ throws(TransportError) in throw again } }
        #expect(try await look { _, _ in [last] } == [last])
        #expect(
            try await look(port: 80) { _, _ throws(TransportError) in throw again }
                == [SocketAddress(last.address, port: 80)])
        // That the name is gone is an answer.
        let gone = TransportError(.nameNotFound, "gone", number: 2)
        await #expect(throws: gone) { try await look { _, _ throws(TransportError) in throw gone } }
        time.advance(by: .seconds(86_400))
        await #expect(throws: again) { try await look { _, _ throws(TransportError) in throw again } }
    }

    @Test func `Families are interleaved, the first one's first, and doubles dropped`() async throws {
        // RFC 8305 §4
        let texts = ["2001:db8::1", "2001:db8::2", "2001:db8::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]
        let addresses = try texts.map(Self.address)
        let expected = try ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"].map(Self.address)
        let found = try await Resolver.addresses(
            of: .name("many.example"), port: 443, timeout: .seconds(1), time: ManualTime()
        ) { _, _ in addresses }
        #expect(found == expected)
        #expect(Resolver.interleaved([]) == [])
    }

    /// A lookup that hangs until it is let go: it reads from a pipe.
    final class Hanging: Sendable {
        private let ends: [Int32]

        init() {
            var ends: [Int32] = [0, 0]
            precondition(pipe(&ends) == 0, "no pipe")
            self.ends = ends
        }

        func lookup() -> [SocketAddress] {
            var byte: UInt8 = 0
            _ = Glibc.read(ends[0], &byte, 1)
            close(ends[0])
            return []
        }

        func letGo() { close(ends[1]) }
    }

    @Test func `A silent resolver times out`() async throws {
        let time = ManualTime()
        let hanging = Hanging()
        defer { hanging.letGo() }
        let waiting = Task {
            try await Resolver.addresses(of: .name("slow.example"), port: 1, timeout: .seconds(10), time: time) {
                _, _ in hanging.lookup()
            }
        }
        while time.nextDeadline == nil { await Task.yield() }
        time.advance(by: .seconds(10))
        let error = await #expect(throws: TransportError.self) { try await waiting.value }
        #expect(error?.code == .timedOut)
    }

    @Test func `A cancelled lookup ends at once`() async throws {
        let time = ManualTime()
        let hanging = Hanging()
        defer { hanging.letGo() }
        let waiting = Task {
            try await Resolver.addresses(of: .name("slow.example"), port: 1, timeout: .seconds(10), time: time) {
                _, _ in hanging.lookup()
            }
        }
        while time.nextDeadline == nil { await Task.yield() }
        waiting.cancel()
        let error = await #expect(throws: TransportError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
    }
}
