import Synchronization
import TransportKit

/// The least carrier over a transport: every session is one dial.
final class DialingCarrier: Carrier {
    private let transport: any Transport
    private let url: ServiceURL
    private let options: DialOptions
    private let source = CarrierStateSource()
    private let state = Mutex((failure: TransportError?.none, wakes: 0))
    private let wrap: @Sendable (any Socket) -> any Socket

    init(
        _ transport: any Transport, url: ServiceURL, options: DialOptions = DialOptions(),
        wrap: @escaping @Sendable (any Socket) -> any Socket = { $0 }
    ) {
        self.transport = transport
        self.url = url
        self.options = options
        self.wrap = wrap
    }

    /// What the last dial failed with.
    var failure: TransportError? { state.withLock { $0.failure } }

    var wakes: Int { state.withLock { $0.wakes } }

    var capabilities: Capabilities { transport.capabilities }
    var protection: Protection { transport.protection(of: url.endpoint) }
    var states: CarrierStates { source.states }

    func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        var options = options
        options.firstFlight = firstFlight
        do throws(TransportError) {
            return wrap(try await transport.dial(url, options: options))
        } catch {
            state.withLock { $0.failure = error }
            throw error.code == .cancelled ? .cancelled : .pathLost(error)
        }
    }

    func wake() async { state.withLock { $0.wakes += 1 } }

    func close(_ code: CloseCode, reason: String) async {
        source.set(.closed(Close(code, reason: reason, origin: .local)))
    }
}
