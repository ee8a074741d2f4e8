internal import Synchronization
internal import TransportKit

/// A transport whose dials are told to somebody, and can be led astray.
struct ObservedTransport: Transport {
    /// What a dial did.
    enum Event: Sendable {
        case began
        case opened(after: Duration)
        case failed(TransportError, after: Duration)
    }

    /// The port to dial instead of the URL's; shared with whoever scripts the fault.
    final class Detour: Sendable {
        private let port = Mutex<UInt16?>(nil)

        var current: UInt16? {
            get { port.withLock { $0 } }
            set { port.withLock { $0 = newValue } }
        }
    }

    let inner: any Transport
    let time: any TimeSource
    let detour: Detour?
    let tell: @Sendable (TransportName, Event) -> Void

    var name: TransportName { inner.name }
    var capabilities: Capabilities { inner.capabilities }

    func protection(of endpoint: Endpoint) -> Protection { inner.protection(of: endpoint) }

    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        let start = time.now()
        var url = url
        if let port = detour?.current { url.endpoint.port = port }
        tell(name, .began)
        do {
            let socket = try await inner.dial(url, options: options)
            tell(name, .opened(after: time.now() - start))
            return socket
        } catch {
            tell(name, .failed(error, after: time.now() - start))
            throw error
        }
    }

    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        try await inner.listen(endpoint, options: options)
    }
}
