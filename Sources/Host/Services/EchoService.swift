public import TransportKit

/// Answers each message and each stream with its own bytes.
///
/// Nothing is queued: a peer that does not read its answers is not read either.
public final class EchoService: GracefulService {
    private let sessions = StreamSessions()

    /// An answer that is nothing but what was said harms nobody who says it twice.
    public var answersEarly: Bool { true }

    /// Makes the service.
    public init() {}

    /// Answers one peer until it closes.
    public func serve(_ socket: any Socket, target: Target) async {
        await sessions.serve(socket) {
            await Self.echoMessages(socket)
        } stream: { stream in
            await Self.echo(stream)
        }
    }

    /// Lets the streams under way finish, then closes with 1001.
    public func beginGracefulShutdown() {
        sessions.beginGracefulShutdown()
    }

    private static func echoMessages(_ socket: any Socket) async {
        do {
            while true {
                try await socket.send(try await socket.receive())
            }
        } catch {
            // The end of the socket is the end of the task; there is nobody left to tell.
            return
        }
    }

    private static func echo(_ stream: any Stream) async {
        do {
            while let bytes = try await stream.read(upTo: Relay.chunk) {
                try await stream.write(bytes)
            }
            try await stream.finish()
        } catch {
            await stream.reset(error.resetCode ?? 0)
        }
    }
}
