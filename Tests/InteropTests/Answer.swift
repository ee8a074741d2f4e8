import TransportKit

/// The answering part of a scenario, as `Peers/scenarios.py` describes it: every message goes back the way it came, every
/// stream chunk by chunk and then `<end>`.
///
/// - Returns: how the conversation ended.
func answer(_ socket: any Socket) async -> Close {
    await withTaskGroup(of: Void.self) { group in
        if socket.info.capabilities.contains(.streams) {
            group.addTask { await answerStreams(of: socket) }
        }
        defer { group.cancelAll() }
        do throws(Close) {
            while true { try await socket.send(try await socket.receive()) }
        } catch {
            return error
        }
    }
}

private func answerStreams(of socket: any Socket) async {
    await withDiscardingTaskGroup { group in
        while let stream = try? await socket.acceptStream() {
            group.addTask { await answer(stream, of: socket) }
        }
    }
}

private func answer(_ stream: any Stream, of socket: any Socket) async {
    do throws(StreamError) {
        while let chunk = try await stream.read(upTo: 65_536) { try await stream.write(chunk) }
        try await stream.write(Bytes("<end>"))
        try await stream.finish()
    } catch {
        guard let code = error.resetCode else { return }
        try? await socket.send(Message(Bytes("reset \(code)")))
    }
}
