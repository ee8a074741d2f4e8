internal import TransportIO
internal import TransportKit

/// Moves messages between a connection and the pipe of a socket.
struct FramedTCPWire: Sendable {
    let connection: TCPConnection
    let limits: Limits
    let readBytes: Int

    /// Takes the bytes apart. Nothing is longer than a message with its code, or a target.
    func makeParser() -> LengthPrefixedMessages {
        LengthPrefixedMessages(limit: max(limits.maxMessageBytes + 1, Target.limit))
    }

    func socket(target: Target, parser: LengthPrefixedMessages) -> MessageSocket {
        let info = SocketInfo(
            transport: "framed-tcp", capabilities: [], protection: .none, target: target,
            localAddress: connection.localAddress, remoteAddress: connection.remoteAddress,
            maxMessageBytes: limits.maxMessageBytes)
        let loop = connection.loop
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
            if let farewell = pipe.farewell { try await write([.close(farewell.code, reason: farewell.wireReason)]) }
            try await connection.finish()
        } catch {
            pipe.lost(error)
        }
    }

    func write(_ frames: [Frame], after target: Target? = nil) async throws(TransportError) {
        var bytes = Bytes()
        if let target {
            bytes.append(contentsOf: LengthPrefixedMessages.header(for: target.wireForm.utf8.count))
            bytes.append(contentsOf: Bytes(target.wireForm))
        }
        for frame in frames { frame.write(to: &bytes) }
        try await connection.write(bytes)
    }

    private func read(into pipe: MessagePipe, with parser: LengthPrefixedMessages) async {
        var parser = parser
        do {
            while let frame = try await next(&parser) {
                switch Frame(frame) {
                case .message(let payload): pipe.received(Message(payload))
                case .close(let code, let reason): pipe.closed(code, reason: reason)
                case nil: pipe.end(.protocolError, reason: "a frame that cannot be read")
                }
                await pipe.waitForRoom()
            }
            pipe.lost(TransportError(.pathReset, "\(connection.remoteAddress) ended without a close"))
        } catch let error as LengthPrefixedMessages.TooLong {
            pipe.end(.tooBig, reason: "a frame has \(error.announced) bytes")
            while (try? await connection.read(upTo: readBytes)) != nil {}
        } catch {
            pipe.lost(error as? TransportError ?? TransportError(.system, "\(error)"))
        }
    }

    /// Waits for the next frame; nil once the peer's direction has ended.
    func next(_ parser: inout LengthPrefixedMessages) async throws -> Bytes? {
        while true {
            if let frame = try parser.next() { return frame }
            guard let bytes = try await connection.read(upTo: readBytes) else { return nil }
            parser.feed(bytes)
        }
    }
}
