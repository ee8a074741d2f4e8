internal import TransportIO
internal import TransportKit

/// Carries the bytes of a TCP connection over a stream, both ways.
///
/// Nothing is queued: each direction holds one chunk and waits until it has gone. The end of a direction is passed on as
/// its end, after its last byte (B12, B13); whatever else happens on either side is a reset on the other.
enum Relay {
    /// How much is read at once. Large, so that a fast flow costs few calls; a read allocates what it finds.
    static let chunk = 256 << 10

    /// How a relay ended.
    enum Ending {
        /// Both directions came to their end.
        case clean
        /// Something broke; both sides have been reset.
        case broken(any Error)
    }

    /// Relays until both directions have ended or one broke. Connection and stream are done with afterwards.
    ///
    /// - Parameter preamble: reads the stream up to where the bytes of the connection begin, and returns those that came
    ///   with it.
    static func run(
        _ connection: TCPConnection, _ stream: any Stream,
        preamble: @escaping @Sendable () async throws -> Bytes
    ) async -> Ending {
        let broken = await withTaskGroup(of: (any Error)?.self) { group in
            group.addTask { await failure { try await up(connection, stream) } }
            group.addTask {
                await failure {
                    let first = try await preamble()
                    if !first.isEmpty { try await connection.write(first) }
                    try await down(connection, stream)
                }
            }
            var first: (any Error)?
            for await ending in group {
                guard let ending, first == nil else { continue }
                first = ending
                // Resetting wakes the other direction too, which then fails in its turn.
                await connection.reset()
                await stream.reset(0)
                group.cancelAll()
            }
            return first
        }
        guard let broken else {
            await connection.close()
            return .clean
        }
        return .broken(broken)
    }

    private static func up(_ connection: TCPConnection, _ stream: any Stream) async throws {
        while let bytes = try await connection.read(upTo: chunk) {
            try await stream.write(bytes)
        }
        try await stream.finish()
    }

    private static func down(_ connection: TCPConnection, _ stream: any Stream) async throws {
        while let bytes = try await stream.read(upTo: chunk) {
            try await connection.write(bytes)
        }
        try await connection.finish()
    }

    private static func failure(_ body: () async throws -> Void) async -> (any Error)? {
        do {
            try await body()
            return nil
        } catch {
            return error
        }
    }
}
