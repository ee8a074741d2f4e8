import MuxCarrier
import TransportKit

/// A transport whose message-only sockets are given streams, as the WebSocket transport does it.
struct MuxedTransport: Transport {
    let inner: any Transport
    let multiplexer: YamuxMultiplexer

    var name: TransportName { inner.name }
    var capabilities: Capabilities { inner.capabilities.union(.streams).subtracting(.text) }

    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        var below = options
        below.firstFlight = nil
        let socket = await multiplexer.wrap(
            try await inner.dial(url, options: below), isDialer: true, limits: options.limits)
        guard let firstFlight = options.firstFlight else { return socket }
        do {
            try await socket.send(Message(firstFlight))
        } catch {
            throw TransportError(.pathReset, "\(error)")
        }
        return socket
    }

    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        MuxedListener(
            inner: try await inner.listen(endpoint, options: options), multiplexer: multiplexer, limits: options.limits)
    }
}

private final class MuxedListener: Listener {
    private let inner: any Listener
    private let multiplexer: YamuxMultiplexer
    private let limits: Limits

    init(inner: any Listener, multiplexer: YamuxMultiplexer, limits: Limits) {
        self.inner = inner
        self.multiplexer = multiplexer
        self.limits = limits
    }

    var endpoint: Endpoint { inner.endpoint }

    func accept() async throws(Close) -> any Socket {
        await multiplexer.wrap(try await inner.accept(), isDialer: false, limits: limits)
    }

    func close(_ code: CloseCode, reason: String) async {
        await inner.close(code, reason: reason)
    }
}
