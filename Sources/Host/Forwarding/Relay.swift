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
        async let upFailure = failure(connection, stream) { try await up(connection, stream) }
        let downFailure = await failure(connection, stream) {
            let first = try await preamble()
            if !first.isEmpty { try await connection.write(first) }
            try await down(connection, stream)
        }
        if let broken = await [downFailure, upFailure].compactMap(\.self).first { return .broken(broken) }
        await connection.close()
        return .clean
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

    /// Runs one direction; if it breaks, resets both sides, which wakes the other direction to fail in its turn.
    private static func failure(
        _ connection: TCPConnection, _ stream: any Stream, _ body: () async throws -> Void
    ) async -> (any Error)? {
        do {
            try await body()
            return nil
        } catch {
            await connection.reset()
            await stream.reset(0)
            return error
        }
    }
}
