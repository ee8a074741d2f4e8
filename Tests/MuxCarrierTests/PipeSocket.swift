import Foundation
import Synchronization
import TransportKit

/// A message-only socket over the standard input and output of another program: for what only wants bytes.
final class PipeSocket: Socket {
    let info = SocketInfo(transport: "pipe", capabilities: [], protection: .none, target: .root)
    private let inbox = Inbox<Message>()
    private let input: FileHandle
    private let output: FileHandle

    init(input: FileHandle, output: FileHandle) {
        self.input = input
        self.output = output
        let reader = Thread { [inbox, output] in
            while true {
                let data = output.availableData
                if data.isEmpty { break }
                inbox.put(Message(Bytes(data)))
            }
            inbox.end(Close(.pathLost, reason: "the other program has ended", origin: .path))
        }
        reader.start()
    }

    func send(_ messages: [Message]) async throws(Close) {
        do {
            for message in messages { try input.write(contentsOf: Data(message.payload)) }
        } catch {
            throw Close(.pathLost, reason: "\(error)", origin: .path)
        }
    }

    func receive() async throws(Close) -> [Message] { try await inbox.takeAll() }
    func openStream() async throws(Close) -> any TransportKit.Stream { throw .misuse("a pipe has no streams") }
    func acceptStream() async throws(Close) -> any TransportKit.Stream { throw .misuse("a pipe has no streams") }

    func close(_ code: CloseCode, reason: String) async -> Close {
        try? input.close()
        return inbox.end(Close(code, reason: reason, origin: .local))
    }
}
