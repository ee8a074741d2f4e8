internal import TransportKit

/// What goes on after a wake: the sessions that stood are asked for a sign of life, and a new one is dialled beside that.
///
/// Confined to its carrier.
final class Recovery {
    enum Phase {
        /// The sessions that stood are being asked.
        case asking
        /// These gave no sign of life, and wait for what becomes of the new one.
        case silent([DirectSocket])
        /// The new one has taken over.
        case replaced
    }

    let spare: Establishment
    var phase = Phase.asking
    /// The task that asks.
    var asking: Task<Void, Never>?
    /// Whether somebody has taken the new session, or waits for it.
    var isTaken = false
    /// Lets a session go that nobody takes.
    var expiry: Task<Void, Never>?

    init(spare: Establishment) {
        self.spare = spare
    }

    func end() {
        asking?.cancel()
        expiry?.cancel()
    }
}

extension DirectCarrier {
    /// How long a session that stood may take to show that it works; longer where its path's round trips are.
    private static let patience = Duration.seconds(1)
    /// How long a new session waits for whoever had the old one.
    private static let keeping = Duration.seconds(10)

    /// Finds out whether the sessions that stand still work, and dials a new one beside that.
    func recover(_ standing: [DirectSocket]) {
        endRecovery()
        guard !standing.isEmpty else { return }
        let recovery = Recovery(spare: begin(firstFlight: nil, isSpare: true))
        self.recovery = recovery
        let id = recovery.spare.id
        recovery.asking = Task(executorPreference: context.executor) {
            let silent = await self.ask(standing, beside: id)
            await self.asked(id, silent: silent)
        }
    }

    /// Gives up what goes on, and the new session where nobody has it.
    ///
    /// - Returns: that session, which is being closed.
    @discardableResult
    func endRecovery() -> DirectSocket? {
        guard let recovery else { return nil }
        self.recovery = nil
        recovery.end()
        guard !recovery.isTaken else { return nil }
        switch recovery.spare.outcome {
        case nil:
            recovery.spare.outcome = .abandoned
            abandon(recovery.spare)
        case .won(let socket):
            abandon(recovery.spare)
            closeLater(socket, .normal, "nobody needs it")
            return socket
        case .failed, .restart, .abandoned: break
        }
        return nil
    }

    /// The new session or the one that is being dialled, for whoever asks for one now.
    func takeSpare() -> Establishment? {
        guard let recovery, !recovery.isTaken else { return nil }
        switch recovery.spare.outcome {
        case .won(let socket) where !socket.watch.hasEnded: break
        case nil: break
        case .won, .failed, .restart, .abandoned: return nil
        }
        recovery.isTaken = true
        recovery.expiry?.cancel()
        return recovery.spare
    }

    /// The spare dial has an outcome, or the sessions that stood were asked: does what follows.
    func settleRecovery() {
        guard let recovery else { return }
        switch recovery.phase {
        case .asking: break
        case .silent(let silent): replace(silent, recovery)
        case .replaced:
            // Its own dials may go on to learn while it waits for whoever takes it.
            if recovery.isTaken { endRecovery() }
        }
    }

    private func replace(_ silent: [DirectSocket], _ recovery: Recovery) {
        switch recovery.spare.outcome {
        case nil: break
        case .won:
            recovery.phase = .replaced
            for socket in silent where !socket.watch.hasEnded {
                closeLater(socket, .goingAway, "the network has changed, and the session gave no sign of life")
            }
            guard !recovery.isTaken else {
                endRecovery()
                return
            }
            recovery.expiry = Task(executorPreference: context.executor) { [id = recovery.spare.id, context] in
                guard (try? await context.time.sleep(for: Self.keeping)) != nil else { return }
                await self.expired(id)
            }
        case .failed, .restart, .abandoned:
            // Nothing better is to be had: what stood ends by itself where it is lost.
            endRecovery()
        }
    }

    private func asked(_ id: UInt64, silent: [DirectSocket]) {
        guard let recovery, recovery.spare.id == id else { return }
        guard !silent.isEmpty else {
            endRecovery()
            return
        }
        recovery.phase = .silent(silent)
        settleRecovery()
    }

    private func expired(_ id: UInt64) {
        guard let recovery, recovery.spare.id == id else { return }
        endRecovery()
    }

    /// - Returns: those that gave no sign of life.
    private func ask(_ standing: [DirectSocket], beside id: UInt64) async -> [DirectSocket] {
        await withTaskGroup(of: DirectSocket?.self) { group in
            for socket in standing {
                group.addTask(executorPreference: context.executor) {
                    await self.answers(socket, beside: id) ? nil : socket
                }
            }
            var silent: [DirectSocket] = []
            for await socket in group { if let socket { silent.append(socket) } }
            return silent
        }
    }

    /// Asks until the session answers, cannot any more, or a new one is open after the limit.
    private func answers(_ socket: DirectSocket, beside id: UInt64) async -> Bool {
        while true {
            let asked = context.time.now()
            if await socket.checkPath(within: Self.patience) { return true }
            let isFinal = context.time.now() - asked < Self.patience
            let isSettled = recovery.map { $0.spare.id != id || $0.spare.outcome != nil } ?? true
            if isFinal || isSettled || socket.watch.hasEnded || Task.isCancelled { return false }
        }
    }
}
