import TransportKit

@testable import MuxCarrier

extension FuzzTarget {
    /// A yamux peer that says anything: read alike however it is cut, and with a bound on what it makes this end keep.
    static let yamux = FuzzTarget(name: "yamux") {
        let ping: [UInt8] = [0, 2, 0, 1, 0, 0, 0, 0, 0x54, 0x4b, 0, 8]
        let lanes: [UInt8] = [0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0]
        let stream: [UInt8] = [0, 1, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 2, 7, 7]
        let away: [UInt8] = [0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        return [ping, ping + lanes, ping + lanes + stream, ping + lanes + stream + away].flatMap { frames in
            [Bytes([0, 5] + frames), Bytes([1, 5] + frames)]
        }
    } run: { input in
        let settings = YamuxSession.Settings(
            isDialer: input.byte() % 2 == 1, streamWindow: 262_144, laneWindow: 262_144, maxStreams: 8)
        let (whole, pieces) = input.wholeAndPieces()
        let (one, other) = try (read(settings, [whole]), read(settings, pieces))
        try demand(one == other, "whole: \(one); in pieces: \(other)")
    }

    private static func read(_ settings: YamuxSession.Settings, _ pieces: [Bytes]) throws -> [String] {
        var session = YamuxSession(settings)
        var failure = ""
        for piece in pieces {
            do {
                try session.receive(piece)
            } catch {
                failure = "\(error)"
                break
            }
        }
        try demand(session.streams.count <= settings.maxStreams + 2 + 64, "\(session.streams.count) streams are kept")
        try demand(session.urgent.count <= YamuxSession.urgentLimit + 64, "\(session.urgent.count) bytes of answers")
        var read: [String] = []
        for id in session.streams.keys.sorted() {
            var bytes: [UInt8] = []
            while let more = session.read(id, upTo: 1 << 20) { bytes += Array(more) }
            read.append("\(id): \(bytes)")
        }
        // Writing to what the peer opened, and letting it go, must do with whatever state it is in.
        for id in session.streams.keys.sorted() {
            session.write(Bytes("answer"), to: id)
            session.finish(id)
            session.release(id)
        }
        for _ in 0..<4 { _ = session.takeOutput(upTo: 65_536) }
        return read + [failure]
    }
}
