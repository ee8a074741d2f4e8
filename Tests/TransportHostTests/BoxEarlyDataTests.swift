import NoiseCarrier
import Synchronization
import Testing
import TransportHost
import TransportKit

/// Whether a box says its first words before the handshake is done.
@Suite(.timeLimit(.minutes(1))) struct BoxEarlyDataTests {
    // R13, R44
    @Test(arguments: [
        ("", true), (", tls: { earlyData: false }", false), (", tls: { tickets: false }", false),
    ])
    func `A box does unless its file says otherwise`(tls: String, isEarly: Bool) async throws {
        let spy = SpyTransport()
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                _ = try KeyFile.make("\(folder)/box.key")
                let graph = try makeGraph(
                    """
                    control: none
                    state: "\(folder)/state"
                    keys: { device: box.key }
                    transports: { quic: { kind: spy } }
                    carriers: { door: { kind: direct, url: "wss://127.0.0.1:1", transports: [quic]\(tls) } }
                    box:
                      door: door
                      doorKeys: "\(StaticPrivateKey().publicKey)"
                      services: { web: "tcp://127.0.0.1:1" }
                    """, loop: loop, folder: folder
                ) { try $0.register(transport: "spy") { _, _ in spy } }
                try await withHost(graph, loop: loop) { _ in _ = await spy.dialled.wait() }
            }
        }
        #expect(spy.options?.earlyData == isEarly)
        #expect(spy.options?.applicationProtocol == WireNames.alpnBox)
    }
}

/// Keeps what it is told, in the place of QUIC, and reaches nobody.
private final class SpyTransport: Transport {
    let name = TransportName.quic
    let capabilities: Capabilities = [.streams, .datagrams]
    let dialled = Signal()
    private let kept = Mutex<DialOptions?>(nil)

    var options: DialOptions? { kept.withLock { $0 } }

    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        kept.withLock { $0 = options }
        dialled.signal()
        throw TransportError(.refused, "there is nobody")
    }

    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        throw TransportError(.unsupported, "it only listens to what is said")
    }
}
