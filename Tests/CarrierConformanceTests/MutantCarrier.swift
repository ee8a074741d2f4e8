import Synchronization
import TransportKit

/// A carrier that breaks one rule, or none.
final class MutantCarrier: Carrier {
    private struct WeakSocket {
        weak var socket: (any Socket)?
    }

    private struct State {
        /// Held, as a carrier must not.
        var kept: [any Socket] = []
        var sessions: [WeakSocket] = []
        var opening: [Signal] = []
    }

    private let inner: any Carrier
    private let mutation: CarrierMutation?
    private let hasRoomForMany: Bool
    private let state = Mutex(State())
    private let ownStates = CarrierStateSource()
    private let early: Task<Void, Never>?

    init(_ inner: any Carrier, mutation: CarrierMutation?, hasRoomForMany: Bool = true) {
        self.inner = inner
        self.mutation = mutation
        self.hasRoomForMany = hasRoomForMany
        early = mutation == .opensEarly ? Task { _ = try? await inner.open() } : nil
    }

    var capabilities: Capabilities { mutation == .hidesCapabilities ? [] : inner.capabilities }
    var protection: Protection { mutation == .overstatesProtection ? .endToEnd : inner.protection }

    var states: CarrierStates {
        mutation == .showsNoState || mutation == .neverEndsItsStates ? ownStates.states : inner.states
    }

    func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        switch mutation {
        case .handsOutTheSameAgain:
            if let last = state.withLock({ $0.kept.last }) { return last }
        case .endsOtherSessions: await endOthers()
        case .neverCancelsOpen:
            let opening = Task { [inner] () async -> Result<any Socket, Close> in
                do throws(Close) { return .success(try await inner.open()) } catch { return .failure(error) }
            }
            return try await opening.value.get()
        case .givesUpInSilence: return try await open(givingUpAfter: .milliseconds(5))
        case .failsOpensOnWake: return try await open(givingUpAfter: .seconds(600))
        default: break
        }
        if !hasRoomForMany, mutation != .neverDisplaces { await endOthers() }
        do throws(Close) {
            let socket = try await inner.open(firstFlight: mutation == .forgetsFirstFlight ? nil : firstFlight)
            if mutation == .doublesFirstFlight, let firstFlight { try await socket.send(Message(firstFlight)) }
            state.withLock { state in
                state.sessions.append(WeakSocket(socket: socket))
                if mutation == .handsOutTheSameAgain || mutation == .keepsSessions { state.kept.append(socket) }
            }
            return mutation == .mutesSessions ? MuteSocket(socket) : socket
        } catch {
            guard mutation == .failsCancelledOpenOtherwise, error == .cancelled else { throw error }
            throw .pathLost(TransportError(.timedOut, "no answer"))
        }
    }

    func wake() async {
        let opening = state.withLock { $0.opening }
        for signal in opening { signal.signal() }
        await inner.wake()
    }

    func close(_ code: CloseCode, reason: String) async {
        switch mutation {
        case .leavesSessions, .opensAfterClose, .leavesOpensWaiting: break
        case .losesReason: await inner.close(code, reason: "")
        default: await inner.close(code, reason: reason)
        }
    }

    /// Ends what a mutation has left.
    func tearDown() async {
        await early?.value
        await inner.close()
        state.withLock { $0.kept = [] }
    }

    private func endOthers() async {
        let others = state.withLock { state in
            defer { state.sessions = [] }
            return state.sessions.compactMap(\.socket)
        }
        for socket in others { await socket.close(.displaced, reason: "a newer session") }
    }

    /// Opens, unless that takes too long or somebody wakes the carrier.
    private func open(givingUpAfter limit: Duration) async throws(Close) -> any Socket {
        let woken = Signal()
        state.withLock { $0.opening.append(woken) }
        let result = await withTaskGroup(of: Result<any Socket, Close>?.self) { group in
            group.addTask { [inner] in
                do throws(Close) { return .success(try await inner.open()) } catch { return .failure(error) }
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            group.addTask {
                _ = await woken.wait()
                return nil
            }
            let first = await group.next()
            group.cancelAll()
            return first ?? nil
        }
        guard let result else { throw .pathLost(TransportError(.timedOut, "gave up")) }
        return try result.get()
    }
}

/// A session on which nothing goes out.
private final class MuteSocket: Socket {
    private let inner: any Socket

    init(_ inner: any Socket) { self.inner = inner }

    var info: SocketInfo { inner.info }
    func send(_ messages: [Message]) async throws(Close) {}
    func receive() async throws(Close) -> [Message] { try await inner.receive() }
    func openStream() async throws(Close) -> any Stream { try await inner.openStream() }
    func acceptStream() async throws(Close) -> any Stream { try await inner.acceptStream() }
    func close(_ code: CloseCode, reason: String) async -> Close { await inner.close(code, reason: reason) }
}
