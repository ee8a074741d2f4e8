internal import TransportKit
internal import TunnelCarrier

/// How links end, and what is left of them: nothing.
extension DoorTable {
    /// Closes a link from this end.
    mutating func close(_ party: Party, _ code: CloseCode, _ reason: String, now: Instant) {
        guard party.link.phase != .closed else { return }
        perform(.close(party.link.id, code, reason))
        perform(.log(.debug, "\(party.name) is closed with \(code): \(reason)"))
        leave(party, now: now)
    }

    /// A link is gone.
    mutating func leave(_ party: Party, now: Instant) {
        let link = party.link
        guard link.phase != .closed else { return }
        if link.phase != .proved { unproved -= 1 }
        let wasGreeted = link.phase == .greeted
        link.phase = .closed
        links[link.id] = nil
        limits.close(link.address)
        perform(.gauge(party.leg.gauge, -1))
        for session in link.sessions.values where session.isLive { end(session, by: party, now: now) }
        // What was to go to this link goes nowhere.
        for session in link.endings where session.phase != .ended { drop(session, with: link) }
        link.endings = []
        link.seal = nil
        link.outbox = LinkOutbox()
        guard let home = link.home else { return }
        link.home = nil
        switch party {
        case .client(let client):
            stopWaiting(client)
            home.arrivals[client.id] = nil
            if let device = client.device, home.clients[device] === client { home.clients[device] = nil }
        case .box(let box):
            if wasGreeted { home.boxArrivals -= 1 }
            if home.box === box { left(home, now: now) }
        }
        if home.isEmpty { homes[home.id] = nil }
    }

    private mutating func left(_ home: DoorHome, now: Instant) {
        home.box = nil
        directory.left(home.id)
        perform(.log(.info, "the box of \(home.name) has left"))
        for client in home.allClients { say(.box(nil), to: client, now: now) }
    }

    private mutating func drop(_ session: DoorSession, with link: DoorLink) {
        detach(session, from: link)
        forget(session)
    }
}

extension DoorTable.Party {
    /// What log lines call it.
    var name: String {
        switch self {
        case .client(let link): "the link of device \(link.name)"
        case .box(let link): "the link of the box of \(link.home?.name ?? "an unknown home")"
        }
    }
}
