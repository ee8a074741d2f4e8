internal import TransportKit

/// When to look again whether what stands back opens: the timer, or the dial that it has started.
enum Probe {
    /// A probe is due then.
    case planned(WallTime, Task<Void, Never>)
    /// It is being dialled.
    case dialling(Task<Void, Never>)
}

/// While a session stands nobody dials, and what stands back would not be tried until the session ends. So a carrier tries
/// it by itself, as often as the policy says, and only to learn: the session stays, and the next one has the choice.
extension DirectCarrier {
    /// A timer of this carrier asks no more often than this, whatever the clock on the wall and the memory say.
    private static let shortestWait = Duration.seconds(1)

    /// Something has changed that says when a probe is due: sets the timer, or stops it where there is none to make.
    func planProbe() {
        if case .dialling = probe { return }
        let due = nextProbe?.time
        if case .planned(let time, _) = probe, time == due { return }
        stopProbing()
        guard let due else { return }
        let time = context.time
        let wait = max(.seconds(due.seconds - time.wallNow().seconds), Self.shortestWait)
        probe = .planned(
            due,
            // A carrier that nobody holds any more is not kept for it.
            Task(executorPreference: context.executor) { [weak self] in
                guard (try? await time.sleep(for: wait)) != nil, !Task.isCancelled else { return }
                await self?.probeIsDue()
            })
    }

    /// Stops the timer or the dial.
    ///
    /// - Returns: the dial, which may take a while to end.
    @discardableResult
    func stopProbing() -> Task<Void, Never>? {
        defer { probe = nil }
        switch probe {
        case .planned(_, let timer):
            timer.cancel()
            return nil
        case .dialling(let dial):
            dial.cancel()
            return dial
        case nil: return nil
        }
    }

    /// What would be probed next, and when: something that carries no session while another transport carries one.
    private var nextProbe: (time: WallTime, transport: any Transport, path: PathKey, carrier: TransportName)? {
        let standing = state.sockets.filter { !$0.watch.hasEnded }.map(\.info.transport)
        guard closed == nil, let carrier = standing.last, let path else { return nil }
        let due = transports.compactMap { transport in
            standing.contains(transport.name)
                ? nil : ledger.nextProbe(transport.name, on: path).map { (time: $0, transport: transport) }
        }
        return due.min { $0.time < $1.time }.map { ($0.time, $0.transport, path, carrier) }
    }

    private func probeIsDue() {
        probe = nil
        guard let next = nextProbe, next.time <= context.time.wallNow() else { return planProbe() }
        let (name, path, carrier) = (next.transport.name, next.path, next.carrier)
        // Also where another dial is under way that finds it out.
        ledger.probing(name, on: path)
        guard context.learning.begin(on: path) else { return planProbe() }
        var options = options
        options.claim = .gone
        options.usualRoundTrip = ledger.record(of: path).smoothedRoundTrip ?? options.usualRoundTrip
        options.firstFlight = nil
        options.earlyData = false
        context.log.debug("\(url.endpoint): \(name.displayName) stands back, and is tried only to learn")
        probe = .dialling(
            Task(executorPreference: context.executor) { [self, url, options] in
                var failure: TransportError?
                do throws(TransportError) {
                    // One that did not look at its claim says the same.
                    _ = await (try next.transport.dial(url, options: options)).close(.normal, reason: "it was to learn")
                } catch {
                    failure = error.code == .superseded ? nil : error
                }
                await self.probed(name, failure, carrier: carrier, on: path, isCancelled: Task.isCancelled)
            })
    }

    private func probed(
        _ name: TransportName, _ failure: TransportError?, carrier: TransportName, on path: PathKey, isCancelled: Bool
    ) {
        context.learning.end(on: path)
        // Whoever has cancelled it has stopped it, or it belongs to the network that was.
        guard !isCancelled else { return }
        probe = nil
        switch failure?.code {
        case nil:
            ledger.probed(name, on: path)
            // R38: it would have worked, so it goes first again.
            if isPreferred(name, to: carrier) { remember(name, key: path) }
        case .cancelled: break
        default: if let failure { ledger.failed(name, failure, carrier: carrier, on: path) }
        }
        planProbe()
    }

    private func isPreferred(_ transport: TransportName, to other: TransportName) -> Bool {
        transports.first { $0.name == transport || $0.name == other }?.name == transport
    }
}
