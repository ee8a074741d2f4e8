import Testing
import TransportKit

@testable import MuxCarrier

/// Frames written down by hand from the yamux specification, and what an end must make of them.
@Suite struct YamuxVectorTests {
    /// A frame as the specification draws it.
    static func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt32, _ length: UInt32, _ data: [UInt8] = []) -> Bytes
    {
        func four(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
        return Bytes([0, kind, 0, flags] + four(stream) + four(length) + data)
    }

    static func listener(maxStreams: Int = 16) -> YamuxSession {
        YamuxSession(YamuxSession.Settings(isDialer: false, maxStreams: maxStreams))
    }

    /// A listener whose peer has opened the lanes, with nothing left to send.
    static func opened(maxStreams: Int = 16) throws -> YamuxSession {
        var session = listener(maxStreams: maxStreams)
        try session.receive(frame(1, 1, 1, 0))
        try session.receive(frame(1, 1, 3, 0))
        _ = session.takeOutput(upTo: 65_536)
        _ = session.takeEvents()
        return session
    }

    static func error(_ frames: Bytes...) -> YamuxError? {
        do throws(YamuxError) {
            guard var session = try? opened() else { return nil }
            for frame in frames { try session.receive(frame) }
            return nil
        } catch {
            return error
        }
    }

    @Test func `A dialer says its limit and opens the lanes at once`() {
        var session = YamuxSession(YamuxSession.Settings(isDialer: true, maxStreams: 1024))
        var expected = Self.frame(2, 1, 0, 0x544b_0400)
        expected.append(contentsOf: Self.frame(1, 1, 1, 0))
        expected.append(contentsOf: Self.frame(1, 1, 3, 0))
        #expect(session.takeOutput(upTo: 65_536) == expected)
        #expect(session.takeOutput(upTo: 65_536).isEmpty)
    }

    @Test func `A listener sends nothing on a lane before the dialer has opened it`() throws {
        var session = Self.listener()
        session.write([7], to: 1)
        #expect(session.takeOutput(upTo: 65_536) == Self.frame(2, 1, 0, 0x544b_0010))
        try session.receive(Self.frame(1, 1, 1, 0))
        var expected = Self.frame(1, 2, 1, 0)
        expected.append(contentsOf: Self.frame(0, 0, 1, 1, [7]))
        #expect(session.takeOutput(upTo: 65_536) == expected)
    }

    @Test func `A ping is answered with its value`() throws {
        var session = try Self.opened()
        try session.receive(Self.frame(2, 1, 0, 0xdead_beef))
        #expect(session.takeOutput(upTo: 100) == Self.frame(2, 2, 0, 0xdead_beef))
        try session.receive(Self.frame(2, 2, 0, 77))
        #expect(session.takeEvents() == [.pong(77)])
    }

    @Test func `A stream opens with data, is acknowledged, and ends in halves`() throws {
        var session = try Self.opened()
        try session.receive(Self.frame(0, 1, 5, 3, [1, 2, 3]))
        #expect(session.takeEvents() == [.opened(5), .readable(5)])
        #expect(session.takeOutput(upTo: 100) == Self.frame(1, 2, 5, 0))
        #expect(session.read(5, upTo: 2) == [1, 2])
        try session.receive(Self.frame(0, 4, 5, 0))
        #expect(session.read(5, upTo: 2) == [3])
        #expect(session.streams[5]?.hasReceivedEnd == true)
        session.write([9], to: 5)
        session.finish(5)
        #expect(session.takeOutput(upTo: 100) == Self.frame(0, 4, 5, 1, [9]))
        #expect(session.peerOpenCount == 0)
        session.release(5)
        #expect(session.streams[5] == nil)
    }

    @Test func `An end that comes with a window update counts`() throws {
        var session = try Self.opened()
        try session.receive(Self.frame(1, 1, 5, 0))
        try session.receive(Self.frame(1, 4, 5, 0))
        #expect(session.streams[5]?.hasReceivedEnd == true)
    }

    @Test func `Half a window read is given back at once, in a window that has grown`() throws {  // B44
        var session = try Self.opened()
        try session.receive(Self.frame(1, 1, 5, 0))
        _ = session.takeOutput(upTo: 100)
        try session.receive(Self.frame(0, 0, 5, 262_144, Array(repeating: 1, count: 262_144)))
        var read = 0
        while read < 131_071, let bytes = session.read(5, upTo: 131_071 - read) { read += bytes.count }
        #expect(!session.hasOutput)
        _ = session.read(5, upTo: 1)
        #expect(session.takeOutput(upTo: 100) == Self.frame(1, 0, 5, 131_072 + 262_144))
    }

    @Test func `Data waits for the window, and control overtakes bulk and streams`() throws {  // R22
        var session = try Self.opened()
        try session.receive(Self.frame(1, 1, 5, 0))
        _ = session.takeOutput(upTo: 100)
        session.write(Bytes(repeating: 5, count: 300_000), to: 5)
        session.write(Bytes(repeating: 3, count: 300_000), to: 3)
        session.write([1], to: 1)
        var output = session.takeOutput(upTo: 65_536)
        var order: [UInt32] = []
        while !output.isEmpty {
            let header = try YamuxHeader.read(from: output.takeFirst(12))
            if header.stream == 3 { #expect(header.length <= 16_384) }
            order.append(header.stream)
            output.removeFirst(Int(header.length))
        }
        #expect(order.first == 1)
        #expect(Set(order) == [1, 3, 5])
        while session.hasOutput { _ = session.takeOutput(upTo: 65_536) }
        #expect(session.queued(5) == 300_000 - 262_144)
        #expect(!session.isFlushed)
        try session.receive(Self.frame(1, 0, 5, 100_000))
        while session.hasOutput { _ = session.takeOutput(upTo: 65_536) }
        #expect(session.queued(5) == 0)
    }

    @Test func `A stream that is alone sends one long frame, and several take turns with short ones`() throws {
        var session = try Self.opened()
        for id: UInt32 in [5, 7] { try session.receive(Self.frame(1, 1, id, 0)) }
        _ = session.takeOutput(upTo: 100)
        session.write(Bytes(repeating: 5, count: 200_000), to: 5)
        #expect(try Self.headers(of: session.takeOutput(upTo: 65_536)).map(\.length) == [65_536])
        session.write(Bytes(repeating: 7, count: 200_000), to: 7)
        let turns = try Self.headers(of: session.takeOutput(upTo: 65_536))
        #expect(turns.map(\.stream) == [5, 7, 5, 7])
        #expect(turns.allSatisfy { $0.length == 16_384 })
    }

    private static func headers(of output: Bytes) throws -> [YamuxHeader] {
        var rest = output
        var headers: [YamuxHeader] = []
        while !rest.isEmpty {
            let header = try YamuxHeader.read(from: rest.takeFirst(YamuxHeader.size))
            headers.append(header)
            rest.removeFirst(Int(header.length))
        }
        return headers
    }

    @Test func `What arrives late for a stream that was reset is dropped, however long`() throws {
        var session = try Self.opened()
        try session.receive(Self.frame(1, 1, 5, 0))
        session.reset(5)
        session.release(5)
        #expect(session.takeOutput(upTo: 100) == Self.frame(1, 8, 5, 0))
        try session.receive(Self.frame(0, 0, 5, 5, [1, 2]))
        try session.receive([3, 4, 5])
        try session.receive(Self.frame(1, 8, 5, 0))
        try session.receive(Self.frame(0, 0, 5, .max))
        try session.receive(Bytes(repeating: 0, count: 100_000))
        #expect(session.streams[5] == nil)
    }

    @Test func `A stream beyond the limit is reset and costs nothing`() throws {
        var session = try Self.opened(maxStreams: 1)
        try session.receive(Self.frame(1, 1, 5, 0))
        try session.receive(Self.frame(1, 1, 7, 0))
        #expect(session.streams[7] == nil)
        var expected = Self.frame(1, 8, 7, 0)
        expected.append(contentsOf: Self.frame(1, 2, 5, 0))
        #expect(session.takeOutput(upTo: 100) == expected)
    }

    @Test func `An end opens streams once it knows the peer's limit, and no more than that`() throws {
        var session = YamuxSession(YamuxSession.Settings(isDialer: true))
        #expect(!session.mayOpen)
        try session.receive(Self.frame(2, 1, 0, 0x544b_0002))
        #expect(session.takeEvents() == [.mayOpen])
        #expect([session.open(), session.open()] == [5, 7])
        #expect(!session.mayOpen)
        try session.receive(Self.frame(1, 8, 5, 0))
        #expect(session.takeEvents().contains(.mayOpen))
        // Another implementation says no limit and answers our ping.
        var other = YamuxSession(YamuxSession.Settings(isDialer: true, maxStreams: 8))
        try other.receive(Self.frame(2, 2, 0, 0x544b_0008))
        #expect(other.mayOpen)
        try other.receive(Self.frame(3, 0, 0, 0))
        #expect(!other.mayOpen)
    }

    @Test func `Every broken rule has its error`() throws {
        #expect(Self.error(Bytes([1] + [UInt8](repeating: 0, count: 11))) == .version(1))
        #expect(Self.error(Self.frame(4, 0, 0, 0)) == .kind(4))
        #expect(Self.error(Self.frame(2, 1, 5, 0)) == .streamOfSession(5))
        #expect(Self.error(Self.frame(3, 0, 5, 0)) == .streamOfSession(5))
        #expect(Self.error(Self.frame(3, 0, 0, 2)) == .wentAway(2))
        #expect(Self.error(Self.frame(1, 1, 0, 0)) == .foreignNumber(0))
        #expect(Self.error(Self.frame(1, 1, 6, 0)) == .foreignNumber(6))
        #expect(Self.error(Self.frame(1, 1, 7, 0), Self.frame(1, 1, 5, 0)) == .reusedNumber(5))
        #expect(Self.error(Self.frame(1, 1, 5, 0), Self.frame(1, 1, 5, 0)) == .reusedNumber(5))
        #expect(Self.error(Self.frame(0, 0, 5, 0)) == .neverOpened(5))
        #expect(Self.error(Self.frame(0, 0, 2, 0)) == .neverOpened(2))
        #expect(
            Self.error(Self.frame(1, 1, 5, 0), Self.frame(0, 0, 5, 262_145))
                == .overWindow(stream: 5, announced: 262_145, window: 262_144))
        #expect(Self.error(Self.frame(1, 1, 5, .max)) == .windowOverflow(5))
        #expect(Self.error(Self.frame(0, 5, 5, 0), Self.frame(0, 0, 5, 1)) == .dataAfterEnd(5))
        #expect(Self.error(Self.frame(0, 4, 1, 0)) == .laneEnded(1))
        #expect(Self.error(Self.frame(1, 8, 3, 0)) == .laneEnded(3))
        var fresh = Self.listener()
        #expect(throws: YamuxError.lanesMissing(5)) { try fresh.receive(Self.frame(1, 1, 5, 0)) }
    }

    @Test func `A flood of pings or of short-lived streams ends the session with bounded memory`() throws {
        var session = try Self.opened()
        #expect(throws: YamuxError.flood) {
            for number in UInt32(0)..<100_000 { try session.receive(Self.frame(2, 1, 0, number)) }
        }
        #expect(session.urgent.count <= 65_536 + 12)
        var other = try Self.opened()
        #expect(throws: YamuxError.flood) {
            for number in 0..<200_000 {
                try other.receive(Self.frame(1, 1, 5 + 2 * UInt32(number), 0))
                try other.receive(Self.frame(1, 8, 5 + 2 * UInt32(number), 0))
                for case .reset(let id) in other.takeEvents() { other.release(id) }
            }
        }
        #expect(other.streams.count <= 4)
    }
}
