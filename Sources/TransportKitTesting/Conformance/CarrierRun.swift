internal import TransportKit

/// One check of a carrier under way.
struct CarrierRun: Sendable {
    let subject: CarrierUnderTest
    private let steps: CheckRun

    init(subject: CarrierUnderTest, rule: String) {
        self.subject = subject
        // Only its name and its patience are asked for.
        var name = TransportUnderTest(name: subject.name, capabilities: []) {
            throw ConformanceFailure(subject: subject.name, rule: rule, what: "a carrier is no transport")
        }
        name.patience = subject.patience
        steps = CheckRun(subject: name, rule: rule)
    }

    // MARK: - Steps

    private func withRig(_ body: @escaping @Sendable (CarrierRig) async throws -> Void) async throws {
        let rig = try await steps.within("making the rig") { [subject] in try await subject.makeRig() }
        var failure: (any Error)?
        do { try await body(rig) } catch { failure = error }
        rig.silence(false)
        try await steps.within("taking the rig down") {
            await rig.carrier.close()
            await rig.tearDown()
        }
        if let failure { throw failure }
    }

    private func open(_ rig: CarrierRig, firstFlight: Bytes? = nil) async throws -> (near: any Socket, far: any Socket)
    {
        async let accepted = steps.within("accept") { try await rig.accept() }
        let near = try await steps.within("open") { try await rig.carrier.open(firstFlight: firstFlight) }
        return (near, try await accepted)
    }

    /// An open that is under way, in a silence.
    private func beginOpen(_ rig: CarrierRig) async throws -> Task<Result<any Socket, Close>, Never> {
        rig.silence(true)
        let opening = Task { () async -> Result<any Socket, Close> in
            do throws(Close) { return .success(try await rig.carrier.open()) } catch { return .failure(error) }
        }
        try await steps.letItWait()
        return opening
    }

    private func says(_ bytes: Bytes, _ from: any Socket, to: any Socket) async throws {
        try await steps.within("sending") { try await from.send(Message(bytes)) }
        let received = try await steps.within("receiving") { try await to.receive() }
        try steps.expect(
            received.map(\.payload) == [bytes], "of [\(bytes.count) B] \(received.map(\.payload.count)) arrived")
    }

    private func end(of socket: any Socket) async throws -> Close {
        try await steps.close(of: "receive") { () async throws(Close) in try await socket.receive() }
    }

    private func until(_ what: String, _ rig: CarrierRig, _ holds: @escaping @Sendable (CarrierState) -> Bool)
        async throws
    {
        let states = rig.carrier.states
        let found = try await steps.within("the state '\(what)'; it is '\(states.latest)'") {
            for await state in states where holds(state) { return true }
            return false
        }
        try steps.expect(found, "it never was \(what)")
    }

    // MARK: - Rules

    func opensNothing() async throws {
        try await withRig { rig in
            _ = (rig.carrier.capabilities, rig.carrier.protection, rig.carrier.states.latest)
            try await steps.letItWait()
            try steps.expect(rig.dials() == 0, "\(rig.dials()) dials went out before anybody opened")
            try steps.expect(rig.carrier.states.latest == .idle, "it begins as \(rig.carrier.states.latest)")
        }
    }

    func talks() async throws {
        try await withRig { rig in
            let (near, far) = try await open(rig)
            try await says([1, 2, 3], near, to: far)
            try await says([4], far, to: near)
        }
    }

    func firstFlight() async throws {
        try await withRig { rig in
            let (near, far) = try await open(rig, firstFlight: [7, 8])
            let first = try await steps.within("receiving") { try await far.receive() }
            try steps.expect(first.first?.payload == [7, 8], "the first flight did not come first")
            try steps.expect(first.count == 1, "the first flight came \(first.count) times")
            try await says([9], near, to: far)
        }
    }

    func nothingLeft() async throws {
        try await withRig { rig in
            let (near, far) = try await open(rig)
            try await steps.within("sending") { try await far.send([Message([1]), Message([2])]) }
            async let ended = far.close()
            await near.close()
            _ = await ended
            let (again, other) = try await open(rig)
            try await says([3], other, to: again)
            try await says([4], again, to: other)
        }
    }

    func declared() async throws {
        try await withRig { rig in
            let (near, far) = try await open(rig)
            let (can, promised) = (near.info.capabilities, rig.carrier.capabilities)
            try steps.expect(promised.isSuperset(of: can), "a session can do \(can), and the carrier says \(promised)")
            try steps.expect(
                near.info.protection >= rig.carrier.protection,
                "a session is protected by \(near.info.protection), and the carrier says \(rig.carrier.protection)")
            if !promised.contains(.streams) {
                let close = try await steps.close(of: "openStream") { () async throws(Close) in
                    _ = try await near.openStream()
                }
                try steps.expect(close.cause?.code == .misuse, "openStream without streams threw \(close)")
            }
            try await says([1], near, to: far)
        }
    }

    func states() async throws {
        try await withRig { rig in
            let (near, far) = try await open(rig)
            try await until("open", rig) {
                if case .open(let path) = $0 { path.transport == near.info.transport } else { false }
            }
            async let ended = far.close()
            await near.close()
            _ = await ended
            try await until("idle", rig) { $0 == .idle }
            let opening = try await beginOpen(rig)
            try await until("connecting", rig) { if case .connecting = $0 { true } else { false } }
            opening.cancel()
            _ = await opening.value
            try await until("idle", rig) { $0 == .idle }
        }
    }

    func watching() async throws {
        try await withRig { rig in
            let states = rig.carrier.states
            let watching = Task { () async -> [CarrierState] in
                var seen: [CarrierState] = []
                for await state in states { seen.append(state) }
                return seen
            }
            try await steps.letItWait()
            _ = try await open(rig)
            try await steps.letItWait()
            try await steps.within("close") { await rig.carrier.close(.goingAway, reason: "enough") }
            let seen = try await steps.within("the end of the states") { await watching.value }
            try steps.expect(seen.first == .idle, "the first state was \(seen.first.map { "\($0)" } ?? "none")")
            guard case .closed(let close)? = seen.last else { throw steps.broken("the last state was no end") }
            try steps.expect(close.code == .goingAway, "the last state says \(close)")
            try steps.expect(zip(seen, seen.dropFirst()).allSatisfy { $0 != $1 }, "a state came twice")
        }
    }

    func cancelledOpen() async throws {
        try await withRig { rig in
            for _ in 0..<3 {
                let opening = try await beginOpen(rig)
                opening.cancel()
                let result = try await steps.within("the cancelled open") { await opening.value }
                guard case .failure(let close) = result else {
                    throw steps.broken("a cancelled open opened in a silence")
                }
                try steps.expect(close == .cancelled, "the cancelled open threw \(close)")
            }
            rig.silence(false)
            try await stillOpens(rig)
        }
    }

    /// Opens a session and says something on it. What was half open before may have reached the peer too.
    private func stillOpens(_ rig: CarrierRig) async throws {
        async let heard: Void = steps.within("receiving on the session that stands") {
            while true {
                let far = try await rig.accept()
                if let first = try? await far.receive(), first.first?.payload == [5] { return }
            }
        }
        let near = try await steps.within("open") { try await rig.carrier.open() }
        try await steps.within("sending") { try await near.send(Message([5])) }
        try await heard
    }

    func waitingOpen() async throws {
        try await withRig { rig in
            let opening = try await beginOpen(rig)
            rig.silence(false)
            let far = try await steps.within("accept") { try await rig.accept() }
            let near = try await steps.within("open") { try await opening.value.get() }
            try await says([1], near, to: far)
        }
    }

    func wake() async throws {
        try await withRig { rig in
            let opening = try await beginOpen(rig)
            try await steps.within("wake") { await rig.carrier.wake() }
            rig.silence(false)
            async let accepted = steps.within("accept") { try await rig.accept() }
            let near = try await steps.within("open") { try await opening.value.get() }
            let far = try await accepted
            async let ended = far.close()
            await near.close()
            _ = await ended
            try await steps.within("wake") { await rig.carrier.wake() }
            try await stillOpens(rig)
        }
    }

    func manySessions() async throws {
        try await withRig { rig in
            let (one, farOne) = try await open(rig)
            let (two, farTwo) = try await open(rig)
            try await says([1], one, to: farOne)
            try await says([2], farTwo, to: two)
            async let ended = farOne.close()
            await one.close()
            _ = await ended
            try await says([3], two, to: farTwo)
        }
    }

    func displaced() async throws {
        try await withRig { rig in
            let (one, farOne) = try await open(rig)
            let (two, farTwo) = try await open(rig)
            let close = try await end(of: one)
            try steps.expect(close.code == .displaced, "the first session ended with \(close)")
            _ = try await end(of: farOne)
            try await says([1], two, to: farTwo)
        }
    }

    func closeSessions() async throws {
        try await withRig { rig in
            let (near, far) = try await open(rig)
            async let closing: Void = steps.within("close") { await rig.carrier.close(.restarting, reason: "enough") }
            let there = try await end(of: far)
            try await closing
            let here = try await end(of: near)
            try steps.expect(here.code == .restarting && here.origin == .local, "this end saw \(here)")
            try steps.expect(there.code == .restarting && there.reason == "enough", "the peer saw \(there)")
        }
    }

    func closedForGood() async throws {
        try await withRig { rig in
            try await steps.within("close") { await rig.carrier.close(.goingAway, reason: "enough") }
            try await steps.within("a second close") { await rig.carrier.close(.normal, reason: "again") }
            for _ in 0..<2 {
                let close = try await steps.close(of: "open") { () async throws(Close) in
                    _ = try await rig.carrier.open()
                }
                try steps.expect(close.code == .goingAway && close.reason == "enough", "open threw \(close)")
            }
            guard case .closed(let close) = rig.carrier.states.latest else { throw steps.broken("it does not say so") }
            try steps.expect(close.code == .goingAway, "the state says \(close)")
            try steps.expect(rig.dials() == 0, "a closed carrier dialled")
        }
    }

    func closeWhileOpening() async throws {
        try await withRig { rig in
            let opening = try await beginOpen(rig)
            try await steps.within("close") { await rig.carrier.close(.goingAway, reason: "enough") }
            let result = try await steps.within("the open that waited") { await opening.value }
            guard case .failure(let close) = result else { throw steps.broken("a closed carrier opened") }
            try steps.expect(close.code == .goingAway, "the open that waited threw \(close)")
        }
    }

    func droppedSession() async throws {
        try await withRig { rig in
            let far = try await openAndDrop(rig)
            let close = try await end(of: far)
            try steps.expect(close.code == .goingAway || close.code == .pathLost, "the peer saw \(close)")
        }
    }

    private func openAndDrop(_ rig: CarrierRig) async throws -> any Socket {
        let (near, far) = try await open(rig)
        _ = near.info
        return far
    }
}
