internal import TransportKit

/// Decides one establishment: what to dial when, who has won, what to learn, and what to remember (R34–R45).
///
/// No dialling and no clock: it is told what happened and when, and answers what to do. Of several things that happen in
/// the same instant the one it is told first came first. It goes on after the win, until everything it wanted to learn
/// is known.
struct Race: Sendable {
    /// What the owner must do.
    enum Action: Equatable, Sendable {
        /// Dial, with the claim of that generation: every generation has one claim, and so one winner at most.
        case dial(TransportName, generation: Int)
        /// Dial with a claim that is gone, only to learn whether it works (R39, R41).
        case probe(TransportName)
        /// Give up a dial.
        case cancel(TransportName)
        /// Hand out the socket of that transport.
        case win(TransportName)
        /// Close the socket that was opened too late.
        case discard(TransportName)
        /// Nothing opened.
        case fail
        /// Let this transport go first on this network for a day.
        case remember(TransportName)
    }

    /// What has become of one transport.
    enum State: Equatable, Sendable {
        /// Its turn comes at that instant. `isProbe`: somebody has won, and it is only to learn.
        case waiting(at: Instant, isProbe: Bool)
        /// It is being dialled for the session.
        case dialling
        /// It is being dialled, or goes on, only to learn whether it works (R38).
        case learning
        /// It would have worked, but the claim was gone.
        case superseded
        case failed(TransportError)
        case won
        /// Its turn never came, or it was given up.
        case cancelled
    }

    /// One transport's part in the race.
    struct Entry: Equatable, Sendable {
        let transport: TransportName
        var state: State
        /// When it was dialled first.
        var start: Instant?
        /// When it opened, failed or was given up.
        var end: Instant?
        /// How often it was dialled for the session.
        var dials = 0
    }

    private enum Phase: Equatable {
        case racing
        case won(TransportName)
        case over
    }

    /// In the order of the plan.
    private(set) var entries: [Entry]
    let start: Instant
    private let preference: [TransportName]
    private var phase = Phase.racing
    private var generation = 0

    /// - Parameters:
    ///   - transports: what is configured, in the order of preference.
    ///   - plan: what the policy says; a transport that it left out comes last, since no policy removes one (R54).
    init(_ transports: [TransportName], plan: [Attempt], now: Instant) {
        preference = transports
        start = now
        var attempts: [Attempt] = []
        for attempt in plan where transports.contains(attempt.transport) {
            guard !attempts.contains(where: { $0.transport == attempt.transport }) else { continue }
            attempts.append(Attempt(attempt.transport, delay: max(attempt.delay, .zero)))
        }
        let last = attempts.map(\.delay).max() ?? .zero
        for transport in transports where !attempts.contains(where: { $0.transport == transport }) {
            attempts.append(Attempt(transport, delay: last))
        }
        entries = attempts.map {
            Entry(transport: $0.transport, state: .waiting(at: now + $0.delay, isProbe: false))
        }
    }

    /// When ``passed(now:)`` must be called at the latest; nil where nobody waits for his turn.
    var deadline: Instant? {
        entries.compactMap { entry in
            if case .waiting(let instant, _) = entry.state { instant } else { nil }
        }.min()
    }

    /// Who has won, if anybody has.
    var winner: TransportName? {
        entries.first { $0.state == .won }?.transport
    }

    /// Whether something is still to be learned after the win.
    var isLearning: Bool {
        guard case .won = phase else { return false }
        return entries.contains { entry in
            switch entry.state {
            case .learning, .waiting(_, isProbe: true): true
            case .waiting(_, isProbe: false), .dialling, .superseded, .failed, .won, .cancelled: false
            }
        }
    }

    // MARK: - What happens

    /// Time has passed. The first call starts the race.
    mutating func passed(now: Instant) -> [Action] {
        var actions: [Action] = []
        startDue(now, &actions)
        return actions
    }

    /// A dial has opened a socket.
    ///
    /// - Parameter mayLearn: whether a learning dial may run on this network now (R41).
    mutating func opened(_ transport: TransportName, mayLearn: Bool, now: Instant) -> [Action] {
        guard let index = index(of: transport) else { return [.discard(transport)] }
        switch (entries[index].state, phase) {
        case (.dialling, .racing):
            entries[index].state = .won
            entries[index].end = now
            phase = .won(transport)
            var actions = [Action.win(transport)]
            settleLosers(of: transport, mayLearn: mayLearn, now, &actions)
            return actions
        case (.learning, _), (.dialling, _):
            // It did not look at its claim; what it says is the same.
            return [.discard(transport)] + failed(transport, TransportError(.superseded, ""), now: now)
        case (.waiting, _), (.superseded, _), (.failed, _), (.won, _), (.cancelled, _):
            return [.discard(transport)]
        }
    }

    /// A dial has failed.
    mutating func failed(_ transport: TransportName, _ error: TransportError, now: Instant) -> [Action] {
        guard let index = index(of: transport) else { return [] }
        switch entries[index].state {
        case .dialling, .learning:
            entries[index].end = now
            // One that finds every claim gone has something wrong with it: it must not go round for ever.
            let isSuperseded = error.code == .superseded && entries[index].dials <= entries.count
            entries[index].state = isSuperseded ? .superseded : .failed(error)
        case .waiting, .superseded, .failed, .won, .cancelled:
            return []
        }
        var actions: [Action] = []
        switch phase {
        case .racing: startDue(now, &actions)
        case .won(let winner): learned(entries[index], winner: winner, &actions)
        case .over: break
        }
        return actions
    }

    /// Nobody wants the session any more, or nothing more is to be learned.
    mutating func abandon(now: Instant) -> [Action] {
        var actions: [Action] = []
        phase = .over
        for index in entries.indices { giveUp(index, now, &actions) }
        return actions
    }

    // MARK: - Racing

    private mutating func startDue(_ now: Instant, _ actions: inout [Action]) {
        var isFirst = phase == .racing
        for index in entries.indices {
            // R35: what has failed uses up no head start.
            let isNext = isFirst
            if isUnderWay(entries[index]) { isFirst = false }
            guard case .waiting(let due, let isProbe) = entries[index].state else { continue }
            guard due <= now || isNext else { continue }
            entries[index].start = now
            entries[index].state = isProbe ? .learning : .dialling
            if isProbe {
                actions.append(.probe(entries[index].transport))
            } else {
                dial(index, now, &actions)
            }
        }
        guard phase == .racing, !entries.contains(where: isUnderWay) else { return }
        // The one that took the claim has failed after all. Those that found it gone would have worked: once more.
        let superseded = entries.indices.filter { entries[$0].state == .superseded }
        for index in superseded { dial(index, now, &actions) }
        if superseded.isEmpty {
            phase = .over
            actions.append(.fail)
        }
    }

    private mutating func dial(_ index: Int, _ now: Instant, _ actions: inout [Action]) {
        // While nobody dials, the claim may be one that a failed dial has taken.
        if !entries.contains(where: { $0.state == .dialling && $0 != entries[index] }) { generation += 1 }
        entries[index].state = .dialling
        entries[index].dials += 1
        actions.append(.dial(entries[index].transport, generation: generation))
    }

    private func isUnderWay(_ entry: Entry) -> Bool {
        switch entry.state {
        case .waiting, .dialling, .learning, .won: true
        case .superseded, .failed, .cancelled: false
        }
    }

    // MARK: - After the win

    private mutating func settleLosers(
        of winner: TransportName, mayLearn: Bool, _ now: Instant, _ actions: inout [Action]
    ) {
        var mayLearn = mayLearn
        for index in entries.indices {
            let entry = entries[index]
            guard isPreferred(entry.transport, to: winner), mayLearn else {
                if entry.state != .won { giveUp(index, now, &actions) }
                continue
            }
            switch entry.state {
            case .dialling:
                entries[index].state = .learning
                mayLearn = false
            case .waiting(let due, _):
                entries[index].state = .waiting(at: due, isProbe: true)
                mayLearn = false
            case .learning, .superseded, .failed, .won, .cancelled:
                break
            }
        }
        rememberWinner(winner, &actions)
        for entry in entries where entry.state == .superseded { learned(entry, winner: winner, &actions) }
    }

    private mutating func learned(_ entry: Entry, winner: TransportName, _ actions: inout [Action]) {
        guard isPreferred(entry.transport, to: winner) else { return }
        switch entry.state {
        case .superseded:
            // R38: it would have worked, so it goes first again.
            actions.append(.remember(entry.transport))
        case .failed:
            rememberWinner(winner, &actions)
        case .waiting, .dialling, .learning, .won, .cancelled:
            break
        }
    }

    /// R40, R177: who won is worth remembering once everything that would be preferred was really tried.
    private func rememberWinner(_ winner: TransportName, _ actions: inout [Action]) {
        let isTried = entries.allSatisfy { entry in
            guard isPreferred(entry.transport, to: winner) else { return true }
            switch entry.state {
            case .dialling, .learning: return true
            case .failed(let error): return error.code != .cancelled && error.code != .resources
            // A better one is known to work.
            case .superseded: return false
            // One that was given up while it was dialled had its chance; one whose turn never came had none.
            case .cancelled: return entry.start != nil
            case .waiting, .won: return false
            }
        }
        if isTried { actions.append(.remember(winner)) }
    }

    private mutating func giveUp(_ index: Int, _ now: Instant, _ actions: inout [Action]) {
        switch entries[index].state {
        case .waiting:
            entries[index].state = .cancelled
        case .dialling, .learning:
            entries[index].state = .cancelled
            entries[index].end = now
            actions.append(.cancel(entries[index].transport))
        case .superseded, .failed, .won, .cancelled:
            break
        }
    }

    private func isPreferred(_ transport: TransportName, to other: TransportName) -> Bool {
        guard let mine = preference.firstIndex(of: transport), let theirs = preference.firstIndex(of: other) else {
            return false
        }
        return mine < theirs
    }

    private func index(of transport: TransportName) -> Int? {
        entries.firstIndex { $0.transport == transport }
    }
}
