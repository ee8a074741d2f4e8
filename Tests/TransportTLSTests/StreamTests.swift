import Testing
import TransportKit
import TransportTLS

/// TLS over memory: what goes in comes out, however it is cut, and every ending is told apart.
struct StreamTests {
    let authority: Authority

    init() throws { authority = try Authority() }

    private func openPair(chunk: Int = .max) throws -> TLSPair {
        let pair = try TLSPair(authority.trusting, authority.server())
        pair.chunk = chunk
        let failures = pair.handshake()
        try #require(failures.client == nil && failures.server == nil)
        return pair
    }

    private func pattern(_ count: Int) -> Bytes {
        Bytes((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    }

    /// Everything that can be read now.
    private func drain(_ end: TLSStream, step: Int = 10_000) throws -> Bytes {
        var all = Bytes()
        while let part = try end.takePlaintext(upTo: step), !part.isEmpty { all.append(contentsOf: part) }
        return all
    }

    @Test(arguments: [(1, 40_000), (7, 100_000), (1000, 1 << 20), (16_389, 1 << 20), (Int.max, 4 << 20)])
    func `transfers arrive whole in both directions, cut anywhere`(chunk: Int, size: Int) throws {
        let pair = try openPair(chunk: chunk)
        let payload = pattern(size)
        try payload.withUnsafeBytes { try pair.client.write($0) }
        pair.move(pair.client, to: pair.server)
        #expect(try drain(pair.server) == payload)
        try payload.withUnsafeBytes { try pair.server.write($0) }
        pair.move(pair.server, to: pair.client)
        #expect(try drain(pair.client, step: 333) == payload)
    }

    @Test func `input borrowed from the caller is read in place and its rest is kept`() throws {
        let pair = try openPair()
        let payload = pattern(100_000)
        try payload.withUnsafeBytes { try pair.client.write($0) }
        let wire = pair.client.takeOutput()
        var received = Bytes()
        // The second half of a record is still to come, and so is what a short read left over.
        for part in [wire.prefix(50_001), wire.dropFirst(50_001)] {
            let read = try part.withUnsafeBytes { bytes in
                try pair.server.withInput(borrowing: bytes) { try pair.server.takePlaintext(upTo: 5) }
            }
            received.append(contentsOf: try #require(read))
        }
        received.append(contentsOf: try drain(pair.server))
        #expect(received == payload)
    }

    @Test func `bulk goes out in full records and small pieces share one`() throws {
        let pair = try openPair()
        let bulk = pattern(3 * 16_384 + 1)
        try bulk.withUnsafeBytes { try pair.client.write($0) }
        #expect(pair.client.takeOutput().recordCount == 4)

        let header = pattern(10)
        let small = pattern(64)
        try header.withUnsafeBytes { header in
            try small.withUnsafeBytes { small in
                try pair.server.write(Array(repeating: [header, small], count: 64).flatMap { $0 })
                #expect(pair.server.takeOutput().recordCount == 1)
                try bulk.withUnsafeBytes { try pair.server.write([header, $0, small, $0]) }
            }
        }
        #expect(pair.server.takeOutput().recordCount == 7)
    }

    @Test func `gathered pieces arrive as if they were one`() throws {
        let pair = try openPair()
        var random = SystemRandomNumberGenerator()
        let seed = UInt64.random(in: 0 ... .max, using: &random)
        var generator = Seeded(state: seed)
        for _ in 0..<20 {
            let sizes = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
                [0, 1, 100, 16_383, 16_384, 16_385, 50_000].randomElement(using: &generator) ?? 0
            }
            let whole = pattern(sizes.reduce(0, +))
            try whole.withUnsafeBytes { bytes in
                var pieces: [UnsafeRawBufferPointer] = []
                var start = 0
                for size in sizes {
                    pieces.append(UnsafeRawBufferPointer(rebasing: bytes[start..<start + size]))
                    start += size
                }
                try pair.client.write(pieces)
            }
            pair.move(pair.client, to: pair.server)
            #expect(try drain(pair.server) == whole, "seed \(seed), sizes \(sizes)")
        }
    }

    @Test func `keys may change in the middle of a transfer`() throws {
        let pair = try openPair()
        let payload = pattern(50_000)
        for _ in 0..<3 {
            try payload.withUnsafeBytes { try pair.client.write($0) }
            try pair.client.updateKeys(bothWays: true)
            try payload.withUnsafeBytes { try pair.client.write($0) }
            pair.move(pair.client, to: pair.server)
            #expect(try drain(pair.server).count == 100_000)
            try payload.withUnsafeBytes { try pair.server.write($0) }
            pair.move(pair.server, to: pair.client)
            #expect(try drain(pair.client) == payload)
        }
    }

    @Test func `a peer that changes keys without end is cut off`() throws {
        let pair = try openPair()
        for _ in 0..<100 { try pair.client.updateKeys(bothWays: true) }
        pair.move(pair.client, to: pair.server)
        let error = #expect(throws: TransportError.self) { try pair.server.takePlaintext() }
        #expect(error?.code == .protocolViolation)
    }

    @Test func `a clean close comes after the last bytes and is told apart from a cut`() throws {
        let pair = try openPair()
        let payload = pattern(20_000)
        try payload.withUnsafeBytes { try pair.client.write($0) }
        pair.client.closeNotify()
        pair.client.closeNotify()
        pair.move(pair.client, to: pair.server)
        pair.server.endInput()
        #expect(try drain(pair.server) == payload)
        #expect(try pair.server.takePlaintext() == nil)
        #expect(try pair.server.takePlaintext() == nil)
        // Half-closed: the other direction goes on.
        try payload.withUnsafeBytes { try pair.server.write($0) }
        pair.move(pair.server, to: pair.client)
        #expect(try drain(pair.client) == payload)
        #expect(throws: TransportError.self) { try payload.withUnsafeBytes { try pair.client.write($0) } }
    }

    @Test(arguments: [0, 1, 4, 5, 300])
    func `a cut is an error, after everything whole that came before it`(tail: Int) throws {
        let pair = try openPair()
        let payload = pattern(16_384)
        try payload.withUnsafeBytes { try pair.client.write($0) }
        try payload.withUnsafeBytes { try pair.client.write($0) }
        let wire = pair.client.takeOutput()
        pair.server.feed(wire.prefix(wire.count / 2 + tail))
        pair.server.endInput()
        var received = Bytes()
        var failure: TransportError?
        while failure == nil {
            do throws(TransportError) {
                guard let part = try pair.server.takePlaintext(upTo: 1 << 20) else { break }
                received.append(contentsOf: part)
            } catch {
                failure = error
            }
        }
        #expect(received == payload)
        #expect(failure?.code == .pathReset)
        #expect(failure?.message.contains("without closing TLS") == true)
    }

    @Test func `a cut during the handshake is a refusal`() throws {
        let pair = try TLSPair(authority.trusting, authority.server())
        #expect(try pair.client.advanceHandshake() == .needsInput)
        pair.client.endInput()
        let error = #expect(throws: TransportError.self) { try pair.client.advanceHandshake() }
        #expect(error?.code == .refused)
        #expect(error?.message == "the service closed the connection during the TLS handshake")
    }

    @Test func `data before the handshake is done is the caller's mistake`() throws {
        let pair = try TLSPair(authority.trusting, authority.server())
        let reading = #expect(throws: TransportError.self) { try pair.client.takePlaintext() }
        #expect(reading?.code == .misuse)
        let writing = #expect(throws: TransportError.self) {
            try pattern(1).withUnsafeBytes { try pair.client.write($0) }
        }
        #expect(writing?.code == .misuse)
    }

    @Test func `an idle stream keeps no output`() throws {
        let pair = try openPair()
        #expect(!pair.client.hasOutput && !pair.server.hasOutput)
        #expect(pair.client.takeOutput().tailroom == 0)
    }
}

/// Repeatable random numbers (SplitMix64).
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}

extension Bytes {
    /// How many TLS records it is made of; -1 where it is not.
    var recordCount: Int {
        var rest = self
        var count = 0
        while !rest.isEmpty {
            guard rest.count >= 5 else { return -1 }
            let length = Int(rest[3]) << 8 | Int(rest[4])
            guard rest.count >= 5 + length else { return -1 }
            rest.removeFirst(5 + length)
            count += 1
        }
        return count
    }
}
