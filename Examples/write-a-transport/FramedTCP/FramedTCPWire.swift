internal import TransportIO
internal import TransportKit

/// Moves messages between a connection and the pipe of a socket.
struct FramedTCPWire: Sendable {
    let connection: TCPConnection
    let limits: Limits
    let readBytes: Int

    /// Takes the bytes apart. No frame is longer than a message with its kind, or a target with its own.
    func makeParser() -> LengthPrefixedMessages {
        LengthPrefixedMessages(limit: 1 + max(limits.maxMessageBytes, Target.limit))
    }

    func socket(target: Target, parser: LengthPrefixedMessages? = nil) -> MessageSocket {
        let info = SocketInfo(
            transport: "framed-tcp", capabilities: [], protection: .none, target: target,
            localAddress: connection.localAddress, remoteAddress: connection.remoteAddress,
            maxMessageBytes: limits.maxMessageBytes)
        let (loop, parser) = (connection.loop, parser ?? makeParser())
        return MessageSocket(info: info, limits: limits, executor: loop, time: loop) { pipe in
            async let reading: Void = read(into: pipe, with: parser)
            await write(from: pipe)
            await reading
            await connection.close()
        }
    }

    private func write(from pipe: MessagePipe) async {
        do throws(TransportError) {
            while let messages = await pipe.nextMessages() { try await write(messages.map { .message($0.payload) }) }
            if let farewell = pipe.farewell { try await write([.close(farewell)]) }
            try await connection.finish()
        } catch {
            pipe.lost(error)
        }
    }

    func write(_ frames: [Frame]) async throws(TransportError) {
        var bytes = Bytes()
        for frame in frames { frame.write(to: &bytes) }
        try await connection.write(bytes)
    }

    private func read(into pipe: MessagePipe, with parser: LengthPrefixedMessages) async {
        var parser = parser
        do {
            repeat {
                while let frame = try parser.next() { take(frame, pipe) }
                await pipe.waitForRoom()
            } while try await feed(&parser)
            pipe.lost(TransportError(.pathReset, "\(connection.remoteAddress) ended without a close"))
        } catch let error as LengthPrefixedMessages.TooLong {
            pipe.end(.tooBig, reason: "a frame has \(error.announced) bytes")
            while (try? await connection.read(upTo: readBytes)) != nil {}
        } catch {
            pipe.lost(error as? TransportError ?? TransportError(.system, "\(error)"))
        }
    }

    /// Reads on; false once the peer's direction has ended.
    func feed(_ parser: inout LengthPrefixedMessages) async throws(TransportError) -> Bool {
        guard let bytes = try await connection.read(upTo: readBytes) else { return false }
        parser.feed(bytes)
        return true
    }

    private func take(_ frame: Bytes, _ pipe: MessagePipe) {
        switch Frame(frame) {
        case .message(let payload): pipe.received(Message(payload))
        case .close(let code, let reason): pipe.closed(code, reason: reason)
        case .target, nil: pipe.end(.protocolError, reason: "a frame that has no place here")
        }
    }
}
