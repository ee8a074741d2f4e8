import Testing
import TransportKit

/// The driving parts that TransportKit takes, against a Python program that answers. Those that break rules are Python's
/// alone.
enum Drive: String, Sendable, CaseIterable, CustomStringConvertible {
    case messages
    case many = "a thousand small messages"
    case text
    case bulk
    case datagrams
    case streams
    case hundredStreams = "a hundred streams"
    case reset

    static let webSocket: [Drive] = [.messages, .many, .text]
    static let quic: [Drive] = allCases.filter { $0 != .text }

    var description: String { rawValue }

    /// Plays the part, then closes with 1000 and `done`.
    func run(_ socket: any Socket) async throws {
        var incoming = Incoming(socket)
        switch self {
        case .messages: try await Self.messages(&incoming)
        case .many: try await Self.many(&incoming)
        case .text: try await Self.text(&incoming)
        case .bulk: try await Self.bulk(&incoming)
        case .datagrams: try await Self.datagrams(&incoming)
        case .streams: try await Self.streams(socket)
        case .hundredStreams: try await Self.hundredStreams(socket)
        case .reset: try await Self.reset(&incoming)
        }
        #expect(await socket.close(.normal, reason: "done") == Close(.normal, reason: "done", origin: .local))
    }

    /// Lengths at which a length field of QUIC or of the WebSocket changes its form.
    private static let sizes = [0, 1, 63, 64, 125, 126, 16_383, 16_384, 65_535, 65_536, 1 << 20]

    private static func messages(_ incoming: inout Incoming) async throws {
        for (seed, size) in sizes.enumerated() { try await incoming.socket.send(Message(pattern(size, seed))) }
        for (seed, size) in sizes.enumerated() {
            #expect(try await incoming.next() == Message(pattern(size, seed)))
        }
    }

    private static func many(_ incoming: inout Incoming) async throws {
        let messages = (0..<1000).map { Message(Bytes("\($0)")) }
        for message in messages { try await incoming.socket.send(message) }
        for message in messages { #expect(try await incoming.next() == message) }
    }

    private static func text(_ incoming: inout Incoming) async throws {
        for words in ["", "plain", "Grüße, 世界, 🦔", String(repeating: "é", count: 40_000)] {
            try await incoming.socket.send(.text(words))
            #expect(try await incoming.next() == .text(words))
        }
    }

    // R7: bulk keeps its order among itself, control among itself.
    private static func bulk(_ incoming: inout Incoming) async throws {
        let bulk = [0, 1, 16_384, 1 << 20, 5].enumerated().map { Message(pattern($1, $0), delivery: .bulk) }
        for message in bulk { try await incoming.socket.send([message, Message(Bytes("between"))]) }
        var received: [Message] = []
        while received.count < bulk.count * 2 { received.append(try await incoming.next()) }
        #expect(received.filter { $0.delivery == .bulk } == bulk)
        #expect(received.filter { $0.delivery == .control }.map(\.payload) == bulk.map { _ in Bytes("between") })
    }

    // R8, R9.
    private static func datagrams(_ incoming: inout Incoming) async throws {
        for size in [0, 1, 64, 1000] {
            let datagram = Message(pattern(size, size), delivery: .unreliable)
            let marker = Message(Bytes("after"))
            // A datagram may be lost, even here: it is sent until it comes back. The control message after it says when to
            // look; the datagram may still come after that.
            var back: [Message] = []
            for _ in 0..<20 where !back.contains(datagram) {
                try await incoming.socket.send([datagram, marker])
                repeat { back.append(try await incoming.next()) } while back.last != marker
            }
            #expect(back.contains(datagram))
            #expect(back.allSatisfy { $0 == datagram || $0 == marker || $0.delivery == .unreliable })
        }
        let long = pattern(5_000)
        try await incoming.socket.send(Message(long, delivery: .unreliable))
        var last: Message
        repeat { last = try await incoming.next() } while last.delivery == .unreliable
        #expect(last == Message(long, delivery: .control))
    }

    // B12: the answer starts before this end's end and ends after it.
    private static func streams(_ socket: any Socket) async throws {
        for seed in 0..<3 {
            let stream = try await socket.openStream()
            try await stream.write(Bytes("first"))
            #expect(try await read(stream, upTo: 5) == Bytes("first"))
            let sent = pattern(300_000, seed)
            async let written: Void = {
                try await stream.write(sent)
                try await stream.finish()
            }()
            #expect(try await read(stream) == sent + Bytes("<end>"))
            try await written
        }
    }

    private static func hundredStreams(_ socket: any Socket) async throws {
        var opened: [any Stream] = []
        for _ in 0..<100 { opened.append(try await socket.openStream()) }
        for stream in opened {
            try await stream.write(Bytes("stream \(stream.id)"))
            try await stream.finish()
        }
        for stream in opened { #expect(try await read(stream) == Bytes("stream \(stream.id)<end>")) }
    }

    private static func reset(_ incoming: inout Incoming) async throws {
        let other = try await incoming.socket.openStream()
        try await other.write(Bytes("other"))
        let stream = try await incoming.socket.openStream()
        try await stream.write(Bytes("some bytes"))
        #expect(try await read(stream, upTo: 10) == Bytes("some bytes"))
        await stream.reset(77)
        #expect(try await incoming.next() == Message(Bytes("reset 77")))
        try await other.finish()
        #expect(try await read(other) == Bytes("other<end>"))
    }

    /// Everything up to the end of a stream, or up to so many bytes.
    private static func read(_ stream: any Stream, upTo limit: Int = .max) async throws -> Bytes {
        var bytes = Bytes()
        while bytes.count < limit, let chunk = try await stream.read(upTo: min(limit - bytes.count, 65_536)) {
            bytes.append(contentsOf: chunk)
        }
        return bytes
    }
}

/// The messages of a socket one by one.
struct Incoming {
    let socket: any Socket
    private var waiting: ArraySlice<Message> = []

    init(_ socket: any Socket) {
        self.socket = socket
    }

    mutating func next() async throws(Close) -> Message {
        while true {
            if let message = waiting.popFirst() { return message }
            waiting = try await socket.receive()[...]
        }
    }
}

/// Bytes in which a missing, doubled or moved part shows.
func pattern(_ count: Int, _ seed: Int = 0) -> Bytes {
    Bytes((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ ($0 >> 8) &+ seed &* 7) })
}

func + (left: Bytes, right: Bytes) -> Bytes {
    var joined = left
    joined.append(contentsOf: right)
    return joined
}
