import FramedTCP
import TransportIO
import TransportKit

/// Registers the transport, makes it by its name, listens, dials, and sends a message there and back.
@main
struct Main {
    static func main() async throws {
        let loop = try EventLoop(name: "example")
        var registry = Registry()
        try registry.register(transport: "framed-tcp", FramedTCPTransport.make)

        let context = BuildContext(executor: loop, time: loop)
        let options = FixedOptions(FramedTCPOptions(readBytes: 16_384))
        let transport = try registry.makeTransport("framed-tcp", options: options, context: context)

        let address = Endpoint(scheme: .ws, host: .ipv4(.loopback), port: 0)
        let listener = try await transport.listen(address, options: ListenOptions())
        async let answering: Void = answer(listener)

        let url = ServiceURL(listener.endpoint, target: Target("/greeting") ?? .root)
        let socket = try await transport.dial(url, options: DialOptions())
        print("dialled \(url) over \(socket.info.transport), which has \(socket.info.capabilities)")
        try await socket.send(Message(Bytes("hello")))
        for message in try await socket.receive() {
            print("received '\(String(validating: message.payload) ?? "?")'")
        }
        print("closed: \(await socket.close())")

        try await answering
        await listener.close()
        await loop.shutdown()
    }

    /// Sends the first messages of one socket back, and waits for its end.
    private static func answer(_ listener: any Listener) async throws(Close) {
        let socket = try await listener.accept()
        print("accepted \(socket.info.target)")
        try await socket.send(try await socket.receive())
        do throws(Close) {
            _ = try await socket.receive()
        } catch {
            print("the peer closed: \(error)")
        }
        await socket.close()
    }
}
