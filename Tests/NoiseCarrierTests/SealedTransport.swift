import NoiseCarrier
import TransportKit

/// A transport whose sockets are sealed: what the conformance suite tries.
struct SealedTransport: Transport {
    let inner: any Transport
    let appKey = StaticPrivateKey()
    let boxKey = StaticPrivateKey()
    let executor: any SerialExecutor & TaskExecutor
    let time: any TimeSource

    var name: TransportName { inner.name }
    var capabilities: Capabilities { inner.capabilities.subtracting([.streams, .text, .earlyData]) }

    func protection(of endpoint: Endpoint) -> Protection { .endToEnd }

    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        var below = options
        below.limits.maxMessageBytes += NoiseSession.overhead
        let dialling = DialingCarrier(inner, url: url, options: below)
        let carrier = NoiseCarrier(
            over: dialling, key: appKey, peer: boxKey.publicKey, executor: executor, time: time)
        do throws(Close) {
            return try await carrier.open(firstFlight: options.firstFlight)
        } catch {
            if let failure = dialling.failure { throw failure }
            if error == .cancelled { throw TransportError(.cancelled, "the dial was cancelled") }
            throw TransportError(.upgradeRefused, "\(error)", number: error.code.rawValue - 4000)
        }
    }

    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        var below = options
        below.limits.maxMessageBytes += NoiseSession.overhead
        let (key, appKey) = (boxKey, appKey.publicKey)
        return SealedListener(
            try await inner.listen(endpoint, options: below),
            acceptor: NoiseAcceptor(key: key, executor: executor, time: time) { peer, _ in peer == appKey },
            executor: executor)
    }
}

/// Shakes hands with whoever comes, and hands out the sealed sockets in the order in which their sockets came.
private final class SealedListener: Listener {
    private let inner: any Listener
    private let sealed = Inbox<any Socket>()
    private let accepting: Task<Void, Never>

    init(_ inner: any Listener, acceptor: NoiseAcceptor, executor: any SerialExecutor & TaskExecutor) {
        self.inner = inner
        let sealed = sealed
        accepting = Task(executorPreference: executor) {
            while true {
                do throws(Close) {
                    let socket = try await inner.accept()
                    guard let ready = try? await acceptor.accept(socket) else { continue }
                    if !sealed.put(ready), let end = sealed.end { await ready.close(end.code, reason: end.reason) }
                } catch {
                    sealed.end(error)
                    return
                }
            }
        }
    }

    deinit {
        accepting.cancel()
    }

    var endpoint: Endpoint { inner.endpoint }

    func accept() async throws(Close) -> any Socket { try await sealed.takeFirst() }

    func close(_ code: CloseCode, reason: String) async {
        sealed.end(Close(code, reason: reason, origin: .local))
        await inner.close(code, reason: reason)
        accepting.cancel()
        await accepting.value
        while let socket = try? await sealed.takeFirst() { await socket.close(code, reason: reason) }
    }
}
