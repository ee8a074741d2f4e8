import MemoryTransport
import Synchronization
import TransportKit
import TransportKitTesting

/// The memory transport with one rule broken.
struct MutantTransport: Transport {
    let inner: MemoryTransport
    let mutation: Mutation

    var name: TransportName { inner.name }
    var capabilities: Capabilities { inner.capabilities }

    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        var options = options
        var late: Claim?
        change(&options.limits)
        switch mutation {
        case .failsCancelledDialOtherwise:
            try? await Task.sleep(for: .milliseconds(1))
            if Task.isCancelled { throw TransportError(.system, "interrupted") }
        case .forgetsFirstFlight: options.firstFlight = nil
        case .neverNoticesSilence: options.keepalive.idleTimeout = .seconds(3600)
        case .ignoresClaim: options.claim = nil
        case .speaksWithoutClaim:
            late = options.claim
            options.claim = nil
        default: break
        }
        do throws(TransportError) {
            let socket = MutantSocket(try await inner.dial(url, options: options), mutation, isDialer: true)
            if let late, !late.take() {
                await socket.close()
                throw TransportError(.superseded, "too late")
            }
            return socket
        } catch {
            if mutation == .hidesWhyDialFailed { throw TransportError(.system, "failed") }
            throw error
        }
    }

    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        var options = options
        change(&options.limits)
        if mutation == .ignoresRoutes { options.route = { _ in .accept } }
        do throws(TransportError) {
            return MutantListener(try await inner.listen(endpoint, options: options), mutation)
        } catch {
            guard mutation == .sharesAddress else { throw error }
            let other = Endpoint(scheme: endpoint.scheme, host: endpoint.host, port: 0)
            return MutantListener(try await inner.listen(other, options: options), mutation)
        }
    }

    private func change(_ limits: inout Limits) {
        switch mutation {
        case .ignoresLimits: limits.maxMessageBytes = 1 << 30
        case .ignoresStreamLimit: limits.maxStreams = 1 << 20
        default: break
        }
    }
}

final class MutantListener: Listener {
    private let inner: any Listener
    private let mutation: Mutation
    private let held = Mutex<(any Socket)?>(nil)

    init(_ inner: any Listener, _ mutation: Mutation) {
        self.inner = inner
        self.mutation = mutation
    }

    var endpoint: Endpoint { inner.endpoint }

    func accept() async throws(Close) -> any Socket {
        MutantSocket(try await acceptInner(), mutation, isDialer: false)
    }

    private func acceptInner() async throws(Close) -> any Socket {
        switch mutation {
        case .losesOnCancelledAccept:
            let socket = try await inner.accept()
            try? await Task.sleep(for: .milliseconds(2))
            if Task.isCancelled { throw .cancelled }
            return socket
        case .acceptsBackwards:
            let first = try await inner.accept()
            let second = try await inner.accept()
            held.withLock { $0 = first }
            return second
        case .letsTwoAccept:
            return try await retryingMisuse { () async throws(Close) in try await self.inner.accept() }
        default: return try await inner.accept()
        }
    }

    func close(_ code: CloseCode, reason: String) async {
        if mutation != .leavesListenerOpen { await inner.close(code, reason: reason) }
    }
}

/// Calls again as long as somebody else is at it: the second caller waits where it should be told off.
func retryingMisuse<Value>(_ call: () async throws(Close) -> Value) async throws(Close) -> Value {
    while true {
        do throws(Close) {
            return try await call()
        } catch {
            guard error.cause?.code == .misuse else { throw error }
            if Task.isCancelled { throw .cancelled }
            await Task.yield()
        }
    }
}

/// Runs a call where cancellation does not reach it.
func unreachable<Value: Sendable>(
    _ call: @escaping @Sendable () async throws(Close) -> Value
) async throws(Close) -> Value {
    let task = Task { () async -> Result<Value, Close> in
        do throws(Close) { return .success(try await call()) } catch { return .failure(error) }
    }
    return try await task.value.get()
}
