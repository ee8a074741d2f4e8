internal import TransportKit

/// What comes first while a handshake waits.
enum Arrival: Sendable {
    case messages([Message])
    case ended(Close)
    /// The deadline has passed, or somebody has given the signal.
    case nothing

    /// Waits for messages of `socket`, until `deadline`, or for a signal. Nothing that arrives is lost.
    static func next(
        on socket: any Socket, until deadline: Instant, or changed: Signal, time: any TimeSource,
        executor: any TaskExecutor
    ) async -> Arrival {
        let arrivals = await withTaskGroup(of: Arrival.self) { group in
            group.addTask(executorPreference: executor) {
                do throws(Close) { return .messages(try await socket.receive()) } catch { return .ended(error) }
            }
            group.addTask(executorPreference: executor) {
                try? await time.sleep(until: deadline)
                return .nothing
            }
            group.addTask(executorPreference: executor) {
                _ = await changed.wait()
                return .nothing
            }
            var arrivals: [Arrival] = []
            while let arrival = await group.next() {
                arrivals.append(arrival)
                group.cancelAll()
            }
            return arrivals
        }
        // Several may have come at once, and a receive that was cancelled here has found no end.
        let isCancelled = Task.isCancelled
        for arrival in arrivals {
            switch arrival {
            case .messages: return arrival
            case .ended(let close): if close != .cancelled || isCancelled { return arrival }
            case .nothing: break
            }
        }
        return .nothing
    }
}
